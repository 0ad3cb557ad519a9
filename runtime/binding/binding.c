#include "binding/binding.h"

#include "binding/lua_choosers.h"
#include "binding/lua_producer.h"
#include "binding/wire/lua_wire.h"
#include "script/loader.h"

void rmq_binding_open(lua_State *L) {
  static const luaL_Reg modules[] = {{"rocketmq.native.producer", luaopen_rocketmq_native_producer},
                                     {"rocketmq.native.selector", luaopen_rocketmq_native_selector},
                                     {"rocketmq.wire", luaopen_rocketmq_wire},
                                     {NULL, NULL}};
  rmq_loader_preload(L, modules);
  rmq_lua_choosers_init(L);
}
