rmq_native_test(select LIBS rmq_select)
