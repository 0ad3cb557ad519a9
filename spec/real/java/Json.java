import java.util.Map;
import java.util.TreeMap;

/** One line of ASCII-only JSON, field by field. */
final class Json {
  private final StringBuilder out = new StringBuilder("{");

  Json text(String name, String value) {
    name(name);
    if (value == null) {
      out.append("null");
    } else {
      quote(value);
    }
    return this;
  }

  Json number(String name, long value) {
    name(name);
    out.append(value);
    return this;
  }

  Json bool(String name, boolean value) {
    name(name);
    out.append(value);
    return this;
  }

  Json texts(String name, Map<String, String> values) {
    Json inner = new Json();
    for (Map.Entry<String, String> entry : new TreeMap<>(values).entrySet()) {
      inner.text(entry.getKey(), entry.getValue());
    }
    return raw(name, inner.toString());
  }

  /** A value that is JSON already. */
  Json raw(String name, String json) {
    name(name);
    out.append(json);
    return this;
  }

  @Override
  public String toString() {
    return out + "}";
  }

  private void name(String name) {
    if (out.length() > 1) {
      out.append(',');
    }
    quote(name);
    out.append(':');
  }

  private void quote(String value) {
    out.append('"');
    for (int i = 0; i < value.length(); i++) {
      char c = value.charAt(i);
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c >= 0x20 && c < 0x7f) {
        out.append(c);
      } else {
        out.append(String.format("\\u%04x", (int) c));
      }
    }
    out.append('"');
  }
}
