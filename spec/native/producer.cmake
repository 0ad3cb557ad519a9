rmq_native_test(settings LIBS rmq_producer)
rmq_native_test(producer_policy LIBS rmq_producer)
rmq_native_test(producer_message LIBS rmq_producer)
rmq_native_test(producer_pack LIBS rmq_producer)
foreach(name
    producer_admin
    producer_away
    producer_batch
    producer_batch_hook
    producer_call
    producer_check
    producer_end
    producer_gather
    producer_hook
    producer_modes
    producer_recall
    producer_route
    producer_send
    producer_trace
    producer_transaction
   producer_request)
  rmq_native_test(${name} LIBS rmq_producer)
  target_sources(test_${name} PRIVATE fake_io.c producer_world.c)
endforeach()
