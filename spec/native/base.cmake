rmq_native_test(base LIBS rmq_base)
rmq_native_test(base_map LIBS rmq_base)
rmq_native_test(base_wheel LIBS rmq_base)
