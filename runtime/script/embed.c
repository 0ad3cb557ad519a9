/* Host tool: compiles Lua files to bytecode and writes a C file with the table of script/builtin.h.
 * It is linked to the LuaJIT that will load the bytecode, and keeps the debug information, so that
 * tracebacks have lines.
 *
 *   embed OUTPUT ROOT FILE...      each FILE is relative to ROOT and becomes a module */
#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_LEN = 256, PER_LINE = 20 };

typedef struct output {
  FILE *file;
  size_t len;
} output;

static int write_bytes(lua_State *L, const void *bytes, size_t len, void *arg) {
  (void)L;
  output *out = arg;
  const unsigned char *byte = bytes;
  for (size_t i = 0; i < len; i++, out->len++) {
    fprintf(out->file, "%d,%s", byte[i], out->len % PER_LINE == PER_LINE - 1 ? "\n" : "");
  }
  return 0;
}

/* Loads a file under the chunk name that its errors will show. */
static int load(lua_State *L, const char *root, const char *path) {
  char full[2 * NAME_MAX_LEN];
  if (snprintf(full, sizeof full, "%s/%s", root, path) >= (int)sizeof full) return -1;
  FILE *file = fopen(full, "rb");
  if (!file) return -1;
  luaL_Buffer text;
  luaL_buffinit(L, &text);
  size_t len;
  while ((len = fread(luaL_prepbuffer(&text), 1, LUAL_BUFFERSIZE, file)) > 0) {
    luaL_addsize(&text, len);
  }
  fclose(file);
  luaL_pushresult(&text);
  lua_pushfstring(L, "@%s", path);
  size_t size;
  const char *source = lua_tolstring(L, -2, &size);
  return luaL_loadbuffer(L, source, size, lua_tostring(L, -1));
}

/* "rocketmq/mock/init.lua" is the module "rocketmq.mock". */
static void module_name(const char *path, char name[NAME_MAX_LEN]) {
  snprintf(name, NAME_MAX_LEN, "%s", path);
  char *end = strrchr(name, '.');
  if (end) *end = '\0';
  size_t len = strlen(name);
  if (len > 5 && strcmp(name + len - 5, "/init") == 0) name[len - 5] = '\0';
  for (char *c = name; *c; c++) {
    if (*c == '/') *c = '.';
  }
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: embed OUTPUT ROOT FILE...\n");
    return 2;
  }
  lua_State *L = luaL_newstate();
  output out = {fopen(argv[1], "w"), 0};
  if (!L || !out.file) {
    fprintf(stderr, "embed: cannot write %s\n", argv[1]);
    return 1;
  }
  fprintf(out.file, "#include \"script/builtin.h\"\n");
  for (int i = 3; i < argc; i++) {
    if (load(L, argv[2], argv[i]) != 0) {
      fprintf(stderr, "embed: %s: %s\n", argv[i],
              lua_gettop(L) > 0 ? lua_tostring(L, -1) : "cannot be read");
      return 1;
    }
    out.len = 0;
    fprintf(out.file, "static const unsigned char code_%d[] = {\n", i);
    lua_dump(L, write_bytes, &out);
    fprintf(out.file, "};\n");
    lua_settop(L, 0);
  }
  fprintf(out.file, "const rmq_builtin rmq_builtin_table[] = {\n");
  for (int i = 3; i < argc; i++) {
    char name[NAME_MAX_LEN];
    module_name(argv[i], name);
    fprintf(out.file, "{\"%s\", \"@%s\", code_%d, sizeof code_%d},\n", name, argv[i], i, i);
  }
  fprintf(out.file, "{0, 0, 0, 0}};\n");
  lua_close(L);
  return fclose(out.file) == 0 ? 0 : 1;
}
