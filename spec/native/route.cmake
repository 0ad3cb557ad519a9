rmq_native_test(route_publish LIBS rmq_route)
