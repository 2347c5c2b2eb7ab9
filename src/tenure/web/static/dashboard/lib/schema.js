// A form from a JSON Schema: objects, lists and unions as parts of it, down to a few levels. What is deeper, and what has no known shape, is
// typed as JSON. `values` keeps what was typed, by the path of each field: "ship_to.city", "lines.0.sku".
import { h } from "./dom.js";
import { icon } from "./ui.js";

const DEEPEST = 5; // a schema may contain itself
const SCALARS = ["string", "integer", "number", "boolean"];

/** Without references; of a union with one known member, that member; of others, all of them as `variants`. */
export function resolve(schema, root) {
  let found = schema ?? {};
  for (let n = 0; n < 10 && found.$ref; n++) found = found.$ref.replace(/^#\//, "").split("/").reduce((at, name) => at?.[name], root) ?? {};
  const options = found.anyOf ?? found.oneOf;
  if (options) {
    const known = options.map((one) => resolve(one, root)).filter((one) => one.type !== "null");
    if (known.length === 1) return { ...known[0], default: found.default, title: found.title, description: found.description ?? known[0].description };
    return { ...found, variants: known };
  }
  if (found.allOf?.length === 1) return { ...resolve(found.allOf[0], root), default: found.default, description: found.description };
  return found;
}

function shapeOf(schema, root, depth) {
  if ("const" in schema) return "const";
  if (schema.enum) return "choice";
  if (schema.variants?.every((one) => SCALARS.includes(one.type) && !one.enum)) return "text";
  if (schema.type === "boolean") return "switch";
  if (["string", "integer", "number"].includes(schema.type)) return "input";
  if (depth >= DEEPEST) return "json";
  if (schema.variants) return "union";
  if (schema.type === "object" && Object.keys(schema.properties ?? {}).length) return "group";
  return schema.type === "array" && schema.items && shapeOf(resolve(schema.items, root), root, depth + 1) !== "json" ? "list" : "json";
}

const at = (parent, name, path, schema, isRequired) => ({ name, path, schema, isRequired, root: parent.root, depth: parent.depth + 1, shape: shapeOf(schema, parent.root, parent.depth + 1) });
const membersOf = (one) => Object.entries(one.schema.properties ?? {}).map(([name, part]) => at(one, name, one.path ? `${one.path}.${name}` : name, resolve(part, one.root), (one.schema.required ?? []).includes(name)));
const itemAt = (one, n) => at(one, String(n), `${one.path}.${n}`, resolve(one.schema.items, one.root), true);
const sizeOf = (one, values) => values[`${one.path}.#`] ?? 0;
const itemsOf = (one, values) => Array.from({ length: sizeOf(one, values) }, (_, n) => itemAt(one, n));
/** Which member of a union is chosen: the first one if it must have a value. */
const variantOf = (one, values) => values[`${one.path}.?`] ?? (one.isRequired ? 0 : undefined);
const chosen = (one, n) => at(one, one.name, `${one.path}|${n}`, one.schema.variants[n], true);

export const fieldsOf = (schema) => membersOf({ schema: resolve(schema ?? {}, schema ?? {}), root: schema ?? {}, path: "", depth: 0 });

// Drawing

function about({ schema, shape, isRequired }) {
  const kind = { choice: "one of", list: "list", union: "one of", group: "object", text: schema.variants?.map((one) => one.type).join(" or ") }[shape] ?? schema.format ?? schema.type ?? "JSON";
  const rest = isRequired ? "required" : schema.default !== undefined && schema.default !== null ? `default ${JSON.stringify(schema.default)}` : "optional";
  return `${kind}, ${rest}`;
}

const labelOf = (one) => (/^\d+$/.test(one.name) ? String(Number(one.name) + 1) : one.name);

/** One field of the form. `errors`: messages by path. */
export function field(one, values, errors, changed) {
  const { path, schema, shape } = one;
  if (shape === "const") return null;
  if (["group", "list", "union"].includes(shape)) return part(one, values, errors, changed);
  const id = `arg-${path}`;
  const error = errors[path];
  const common = { id, "aria-invalid": error ? "true" : null, "aria-describedby": error ? `${id}-error` : null };
  const type = (value) => (event) => { values[path] = value(event.target); changed(); };
  const note = error ? h("span.error", { id: `${id}-error` }, icon("warn", 12), error) : schema.description && h("span.help", schema.description);
  const name = h("label", { for: id }, labelOf(one), " ", h("span.type", about(one)));
  if (shape === "switch") return h("div.field.full", { key: path }, h("div.row", h("input.switch", { ...common, type: "checkbox", checked: Boolean(values[path] ?? schema.default), onchange: type((element) => element.checked) }), name), note);
  let control;
  if (shape === "choice") control = h("select.select", { ...common, onchange: type((element) => (element.value === "" ? undefined : JSON.parse(element.value))) }, !one.isRequired && h("option", { value: "" }, "–"), schema.enum.map((value) => h("option", { value: JSON.stringify(value), selected: values[path] === value }, String(value))));
  else if (shape === "json") control = h("textarea.area", { ...common, rows: "3", spellcheck: "false", placeholder: schema.type === "array" ? "[]" : schema.type === "object" ? "{}" : "", value: values[path] ?? "", oninput: type((element) => element.value || undefined) });
  else control = h("input.input", { ...common, value: values[path] ?? "", placeholder: schema.examples?.[0] ?? "", inputmode: ["integer", "number"].includes(schema.type) ? "decimal" : null, oninput: type((element) => element.value || undefined) });
  return h("div.field", { key: path, class: shape === "json" ? "full" : null }, name, control, note);
}

/** Fields that belong together. */
function part(one, values, errors, changed) {
  const { name, path, schema, shape } = one;
  const error = errors[path];
  const body = { group: group, list: list, union: union }[shape];
  return h("fieldset.field.full.nest", { key: path, id: `arg-${path}` }, h("legend", labelOf(one), " ", h("span.type", about(one))), schema.description && h("span.help", schema.description), body(one, values, errors, changed), error && h("span.error", { role: "alert", "data-name": name }, icon("warn", 12), error));
}

const group = (one, values, errors, changed) => h("div.form-grid", membersOf(one).map((member) => field(member, values, errors, changed)));

function list(one, values, errors, changed) {
  const resize = (n) => { values[`${one.path}.#`] = n; changed(); };
  return h("div.stack.tight", itemsOf(one, values).map((item, n) => h("div.nest-item", { key: item.path }, field(item, values, errors, changed), h("button.btn.ghost.icon.sm", { type: "button", "aria-label": `Remove ${one.name} ${n + 1}`, title: "Remove", onclick: () => { drop(one, n, values); resize(sizeOf(one, values) - 1); } }, icon("x", 14)))),
    h("div", h("button.btn.sm", { type: "button", onclick: () => resize(sizeOf(one, values) + 1) }, icon("plus", 12), `Add to ${one.name}`)));
}

function union(one, values, errors, changed) {
  const n = variantOf(one, values);
  const id = `arg-${one.path}-which`;
  const choose = (event) => { values[`${one.path}.?`] = event.target.value === "" ? undefined : Number(event.target.value); changed(); };
  const inner = n === undefined ? null : chosen(one, n);
  return h("div.stack.tight", h("div.field", h("label.sr", { for: id }, `Which ${one.name}`), h("select.select", { id, onchange: choose }, !one.isRequired && h("option", { value: "", selected: n === undefined }, "–"), one.schema.variants.map((variant, k) => h("option", { value: String(k), selected: k === n }, nameOf(variant, k))))),
    inner && (inner.shape === "group" ? group(inner, values, errors, changed) : field(inner, values, errors, changed)));
}

const nameOf = (variant, k) => variant.title ?? Object.values(variant.properties ?? {}).find((one) => "const" in one)?.const ?? variant.const ?? variant.type ?? `variant ${k + 1}`;

/** The later items take the places of the earlier ones. */
function drop(one, n, values) {
  const start = `${one.path}.`;
  for (const path of Object.keys(values).filter((key) => key.startsWith(start)).sort((a, b) => parseInt(a.slice(start.length), 10) - parseInt(b.slice(start.length), 10))) {
    const place = path.slice(start.length).match(/^(\d+)(.*)$/);
    if (!place || Number(place[1]) < n) continue;
    if (Number(place[1]) > n) values[`${start}${place[1] - 1}${place[2]}`] = values[path];
    delete values[path];
  }
}

// Reading

/** {args, errors}: numbers and JSON are read; what is empty is left out. */
export function read(fields, values) {
  const errors = {};
  return { args: members(fields, values, errors), errors };
}

function members(fields, values, errors) {
  const found = fields.map((one) => [one.name, valueOf(one, values, errors)]);
  return Object.fromEntries(found.filter(([, value]) => value !== undefined));
}

const isTouched = ({ path }, values) => Object.entries(values).some(([key, value]) => value !== undefined && value !== 0 && (key.startsWith(`${path}.`) || key.startsWith(`${path}|`)));

function valueOf(one, values, errors) {
  const { name, path, schema, shape, isRequired } = one;
  if (shape === "const") return isRequired || schema.default !== undefined ? schema.const : undefined;
  if (shape === "group") return isRequired || isTouched(one, values) ? members(membersOf(one), values, errors) : undefined;
  if (shape === "list") return isRequired || sizeOf(one, values) ? itemsOf(one, values).map((item) => valueOf(item, values, errors) ?? null) : undefined;
  if (shape === "union") return variantOf(one, values) === undefined ? undefined : valueOf(chosen(one, variantOf(one, values)), values, errors);
  const value = values[path];
  if (value === undefined || value === "") {
    if (!isRequired) return undefined;
    if (shape === "switch") return false;
    if (shape === "choice") return schema.enum[0];
    errors[path] = `${labelOf(one)} is required.`;
    return undefined;
  }
  if (shape === "input") return schema.type === "string" ? value : numberOf(value, schema, path, errors);
  return shape === "json" || shape === "text" ? parsed(value, schema, path, errors) : value;
}

function numberOf(value, schema, path, errors) {
  const number = Number(value);
  if (Number.isFinite(number) && (schema.type !== "integer" || Number.isInteger(number))) return number;
  errors[path] = `'${value}' is not ${schema.type === "integer" ? "a whole number" : "a number"}.`;
  return undefined;
}

function parsed(value, schema, path, errors) {
  try {
    return JSON.parse(value);
  } catch {
    if (schema.type) errors[path] = `This is not JSON. Give ${schema.type === "array" ? 'a list such as ["a", "b"]' : 'an object such as {"a": 1}'}.`;
    return schema.type ? undefined : value;
  }
}

// Writing

/** What is typed into the fields for these arguments. */
export function written(fields, args) {
  const values = {};
  for (const one of fields) write(one, args?.[one.name], values);
  return values;
}

function write(one, value, values) {
  const { path, schema, shape } = one;
  if (value === undefined || value === null) return;
  if (shape === "group") for (const member of membersOf(one)) write(member, value[member.name], values);
  else if (shape === "list") {
    values[`${path}.#`] = value.length;
    value.forEach((item, n) => write(itemAt(one, n), item, values));
  } else if (shape === "union") {
    const n = schema.variants.findIndex((variant) => fits(value, variant));
    if (n < 0) return;
    values[`${path}.?`] = n;
    write(chosen(one, n), value, values);
  } else if (shape !== "const") values[path] = ["choice", "switch"].includes(shape) || typeof value === "string" ? value : shape === "json" ? JSON.stringify(value, null, 2) : JSON.stringify(value);
}

function fits(value, schema) {
  if ("const" in schema) return value === schema.const;
  if (schema.enum) return schema.enum.includes(value);
  if (schema.type === "array") return Array.isArray(value);
  if (schema.type === "object") return typeof value === "object" && !Array.isArray(value) && (schema.required ?? []).every((name) => name in value) && Object.entries(schema.properties ?? {}).every(([name, member]) => !("const" in member) || !(name in value) || value[name] === member.const);
  return schema.type === undefined || typeof value === ({ integer: "number", null: "object" }[schema.type] ?? schema.type);
}

/** The path of the field that the server names by these parts: "lines", "0", "sku". The tag of a union's member, which it names too, is none. */
export function pathOf(fields, values, names) {
  let [list, found] = [fields, null];
  for (const name of names) {
    const next = list.find((one) => one.name === name);
    if (!next) continue;
    found = next;
    list = below(next, values);
  }
  return found?.path ?? names[0];
}

function below(one, values) {
  if (one.shape === "group") return membersOf(one);
  if (one.shape === "list") return itemsOf(one, values);
  return one.shape === "union" && variantOf(one, values) !== undefined ? below(chosen(one, variantOf(one, values)), values) : [];
}
