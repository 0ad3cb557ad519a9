rmq_native_test(wire LIBS rmq_wire)
rmq_native_test(wire_guard LIBS rmq_wire)
rmq_native_test(wire_trace LIBS rmq_wire)
rmq_native_test(wire_compress LIBS rmq_wire)
