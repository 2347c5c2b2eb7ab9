// Form fields from a JSON Schema, and their values back.
import { h } from "./dom.js";
import { icon } from "./ui.js";

export function resolve(schema, root) {
  let found = schema ?? {};
  for (let n = 0; n < 10 && found.$ref; n++) found = found.$ref.replace(/^#\//, "").split("/").reduce((at, name) => at?.[name], root) ?? {};
  const options = found.anyOf ?? found.oneOf;
  if (options) {
    const known = options.map((one) => resolve(one, root)).filter((one) => one.type !== "null");
    if (known.length === 1) return { ...known[0], default: found.default, title: found.title, description: found.description ?? known[0].description, isOptional: options.length > 1 };
  }
  if (found.allOf?.length === 1) return { ...resolve(found.allOf[0], root), default: found.default, description: found.description };
  return found;
}

export const fieldsOf = (schema) => {
  const root = schema ?? {};
  const top = resolve(root, root);
  return Object.entries(top.properties ?? {}).map(([name, part]) => ({ name, schema: resolve(part, root), isRequired: (top.required ?? []).includes(name) }));
};

const isLong = (schema) => ["object", "array"].includes(schema.type) || !schema.type;

function about({ schema, isRequired }) {
  const kind = schema.enum ? "one of" : schema.format ?? schema.type ?? "JSON";
  const rest = isRequired ? "required" : schema.default !== undefined && schema.default !== null ? `default ${JSON.stringify(schema.default)}` : "optional";
  return `${kind}, ${rest}`;
}

/** One field of the form. `values` keeps what was typed; `errors` has the messages of the server. */
export function field(one, values, errors, changed) {
  const { name, schema } = one;
  const id = `arg-${name}`;
  const error = errors[name];
  const common = { id, "aria-invalid": error ? "true" : null, "aria-describedby": error ? `${id}-error` : null };
  const type = (value) => (event) => { values[name] = value(event.target); changed(); };
  let control;
  if (schema.enum) control = h("select.select", { ...common, onchange: type((element) => (element.value === "" ? undefined : JSON.parse(element.value))) }, !one.isRequired && h("option", { value: "" }, "–"), schema.enum.map((value) => h("option", { value: JSON.stringify(value), selected: values[name] === value }, String(value))));
  else if (schema.type === "boolean") return h("div.field.full", { key: name }, h("div.row", h("input.switch", { ...common, type: "checkbox", checked: Boolean(values[name] ?? schema.default), onchange: type((element) => element.checked) }), h("label.medium", { for: id }, name), h("span.type", about(one))), schema.description && h("span.help", schema.description));
  else if (isLong(schema)) control = h("textarea.area", { ...common, rows: "3", spellcheck: "false", value: values[name] ?? "", oninput: type((element) => element.value || undefined) });
  else control = h("input.input", { ...common, value: values[name] ?? "", placeholder: schema.examples?.[0] ?? "", inputmode: ["integer", "number"].includes(schema.type) ? "decimal" : null, oninput: type((element) => element.value || undefined) });
  return h("div.field", { key: name, class: isLong(schema) && !schema.enum ? "full" : null }, h("label", { for: id }, name, " ", h("span.type", about(one))), control, error ? h("span.error", { id: `${id}-error` }, icon("warn", 12), error) : schema.description && h("span.help", schema.description));
}

/** {args, errors}: numbers and JSON are read; what is empty is left out. */
export function read(fields, values) {
  const args = {};
  const errors = {};
  for (const { name, schema, isRequired } of fields) {
    const value = values[name];
    if (value === undefined || value === "") {
      if (isRequired && schema.type !== "boolean") errors[name] = `${name} is required.`;
      else if (isRequired) args[name] = false;
      continue;
    }
    if (schema.enum || schema.type === "boolean" || (schema.type === "string" && typeof value === "string")) args[name] = value;
    else if (["integer", "number"].includes(schema.type)) {
      const number = Number(value);
      if (!Number.isFinite(number) || (schema.type === "integer" && !Number.isInteger(number))) errors[name] = `'${value}' is not ${schema.type === "integer" ? "a whole number" : "a number"}.`;
      else args[name] = number;
    } else {
      try {
        args[name] = JSON.parse(value);
      } catch {
        if (schema.type) errors[name] = `This is not JSON. Give ${schema.type === "array" ? 'a list such as ["a", "b"]' : 'an object such as {"a": 1}'}.`;
        else args[name] = value;
      }
    }
  }
  return { args, errors };
}

/** What is typed into the fields for these arguments. */
export function written(fields, args) {
  const values = {};
  for (const { name, schema } of fields) {
    const value = args?.[name];
    if (value === undefined || value === null) continue;
    values[name] = schema.enum || schema.type === "boolean" || typeof value === "string" ? value : isLong(schema) ? JSON.stringify(value, null, 2) : String(value);
  }
  return values;
}
