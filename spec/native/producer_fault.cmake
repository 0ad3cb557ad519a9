rmq_native_test(producer_fault LIBS rmq_producer)
target_sources(test_producer_fault PRIVATE fake_io.c producer_world.c)
