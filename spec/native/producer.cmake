rmq_native_test(settings LIBS rmq_producer)
rmq_native_test(producer_policy LIBS rmq_producer)
rmq_native_test(producer_message LIBS rmq_producer)
rmq_native_test(producer_pack LIBS rmq_producer)
foreach(name producer_send producer_modes producer_route producer_away producer_end producer_call
    producer_admin producer_batch producer_hook producer_trace producer_transaction
    producer_check producer_gather producer_batch_hook)
  rmq_native_test(${name} LIBS rmq_producer)
  target_sources(test_${name} PRIVATE fake_io.c producer_world.c)
endforeach()
