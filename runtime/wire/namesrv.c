#include "wire/namesrv.h"

#include "base/error.h"

static bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static bool is_host_char(char c) { return is_alphanumeric(c) || c == '.' || c == '-' || c == '_'; }

/* The characters of an IPv6 address with its zone ("fe80::1%eth0"). */
static bool is_v6_char(char c) { return is_host_char(c) || c == ':' || c == '%'; }

static bool all_chars(rmq_slice text, bool (*accepts)(char)) {
  for (size_t i = 0; i < text.len; i++) {
    if (!accepts(text.ptr[i])) return false;
  }
  return text.len > 0;
}

/* 1..65535, or 0. */
static int read_port(rmq_slice text) {
  int port = 0;
  if (text.len == 0 || text.len > 5) return 0;
  for (size_t i = 0; i < text.len; i++) {
    if (text.ptr[i] < '0' || text.ptr[i] > '9') return 0;
    port = port * 10 + (text.ptr[i] - '0');
  }
  return port <= 65535 ? port : 0;
}

static int refuse(const char **why, const char *text) {
  *why = text;
  return RMQ_EINVAL;
}

static int split_v6(rmq_slice text, rmq_slice *host, rmq_slice *port, const char **why) {
  const char *close = memchr(text.ptr, ']', text.len);
  if (!close) return refuse(why, "the ']' after the IPv6 address is missing");
  *host = rmq_slice_make(text.ptr + 1, (size_t)(close - text.ptr - 1));
  rmq_slice rest = rmq_slice_make(close + 1, text.len - host->len - 2);
  if (rest.len == 0 || rest.ptr[0] != ':') {
    return refuse(why, "the port is missing; write [address]:port");
  }
  *port = rmq_slice_make(rest.ptr + 1, rest.len - 1);
  if (!all_chars(*host, is_v6_char) || !memchr(host->ptr, ':', host->len)) {
    return refuse(why, "there is no IPv6 address between the brackets");
  }
  return 0;
}

static int split_name(rmq_slice text, rmq_slice *host, rmq_slice *port, const char **why) {
  const char *colon = memchr(text.ptr, ':', text.len);
  if (!colon) return refuse(why, "the port is missing");
  *host = rmq_slice_make(text.ptr, (size_t)(colon - text.ptr));
  *port = rmq_slice_make(colon + 1, text.len - host->len - 1);
  if (host->len == 0) return refuse(why, "the host is missing");
  if (memchr(port->ptr, ':', port->len)) {
    return refuse(why, "there is more than one ':'; write an IPv6 address as [address]:port");
  }
  if (!all_chars(*host, is_host_char)) {
    return refuse(why, "the host has a character that no host name has");
  }
  return 0;
}

int rmq_host_port_parse(rmq_slice text, rmq_host_port *out, const char **why) {
  rmq_slice port;
  if (text.len == 0) return refuse(why, "the address is empty");
  int err = text.ptr[0] == '[' ? split_v6(text, &out->host, &port, why)
                               : split_name(text, &out->host, &port, why);
  if (err) return err;
  out->port = read_port(port);
  return out->port ? 0 : refuse(why, "the port must be a number from 1 to 65535");
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static rmq_slice trim(rmq_slice text) {
  while (text.len > 0 && is_blank(text.ptr[0])) {
    text.ptr++;
    text.len--;
  }
  while (text.len > 0 && is_blank(text.ptr[text.len - 1])) text.len--;
  return text;
}

/* What follows a scheme, or the text as it is. */
static rmq_slice strip_scheme(rmq_slice text, const char *scheme) {
  size_t len = strlen(scheme);
  if (text.len < len) return text;
  for (size_t i = 0; i < len; i++) {
    char c = text.ptr[i];
    if (c >= 'A' && c <= 'Z') c = (char)(c + ('a' - 'A'));
    if (c != scheme[i]) return text;
  }
  return rmq_slice_make(text.ptr + len, text.len - len);
}

/* The address in one part of the list; a path is only cut off after a scheme, elsewhere it is a mistake. */
static rmq_slice strip_url(rmq_slice part) {
  rmq_slice address = strip_scheme(strip_scheme(part, "http://"), "https://");
  if (address.len == part.len) return part;
  const char *slash = address.len ? memchr(address.ptr, '/', address.len) : NULL;
  if (slash) address.len = (size_t)(slash - address.ptr);
  return address;
}

static rmq_slice take_part(rmq_slice *rest) {
  size_t len = 0;
  while (len < rest->len && rest->ptr[len] != ';' && rest->ptr[len] != ',') len++;
  rmq_slice part = rmq_slice_make(rest->ptr, len);
  size_t taken = len < rest->len ? len + 1 : len;
  *rest = rmq_slice_make(rest->ptr + taken, rest->len - taken);
  return trim(part);
}

int rmq_namesrv_next(rmq_slice *rest, rmq_slice *out, const char **why) {
  while (rest->len > 0) {
    rmq_slice part = take_part(rest);
    if (part.len == 0) continue;
    rmq_host_port parsed;
    *out = strip_url(part);
    int err = rmq_host_port_parse(*out, &parsed, why);
    if (!err) return 1;
    *out = part;
    return err;
  }
  return 0;
}
