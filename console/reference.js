// Shows the OpenAPI document of this recorder: every operation with its parameters, answers and examples.

const byId = (id) => document.getElementById(id);

/** An element with text or children. */
function element(name, content, className) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...[content].flat());
  return made;
}

const code = (text) => element('code', text);
const json = (value) => element('pre', JSON.stringify(value, undefined, 2));

function table(headings, rows) {
  const cells = (kind, values) => values.map((value) => element(kind, value));
  const head = element('tr', cells('th', headings));
  return element('table', [head, ...rows.map((row) => element('tr', cells('td', row)))]);
}

/** Only the schemas that have names. */
let named = {};

const nameOf = ({ $ref }) => $ref.split('/').at(-1);

/** Resolves a schema that refers to another one, or allows null beside it. */
function resolved(schema) {
  if (schema?.$ref) return named[nameOf(schema)];
  const other = schema?.anyOf?.find(({ type }) => type !== 'null');
  return other ? resolved(other) : schema;
}

/** A schema in a few words. */
function typeOf(schema = {}) {
  if (schema.$ref) return nameOf(schema);
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(' or ');
  if (schema.enum) return schema.enum.map(String).join(' | ');
  if (schema.type === 'array') return `list of ${typeOf(schema.items)}`;
  return [schema.type].flat().join(' or ');
}

/** The fields of an object, nested ones with their path. */
function fieldsOf(schema, prefix = '') {
  const whole = resolved(schema);
  const object = whole?.type === 'array' ? resolved(whole.items) : whole;
  return Object.entries(object?.properties ?? {}).flatMap(([name, field]) => [
    { name: prefix + name, field, required: object.required?.includes(name) ?? false },
    ...fieldsOf(field, `${prefix}${name}.`),
  ]);
}

const fieldTable = (schema) =>
  table(
    ['Field', 'Type', ''],
    fieldsOf(schema).map(({ name, field, required }) => [
      code(name),
      typeOf(field),
      `${required ? '' : '(optional) '}${field.description ?? ''}`,
    ]),
  );

function contentOf(content = {}) {
  return Object.entries(content).flatMap(([type, { schema, example }]) => {
    const parts = [element('p', [code(type)], 'quiet')];
    if (fieldsOf(schema).length > 0) parts.push(fieldTable(schema));
    if (example !== undefined) parts.push(json(example));
    return parts;
  });
}

function securityOf(security = []) {
  if (security.length === 0) return 'Needs no token.';
  const ways = { bearer: 'Authorization: Bearer', basic: 'Basic with the token as password', query: '?access_token=' };
  return `Token: ${security
    .flatMap(Object.keys)
    .map((name) => ways[name])
    .join(', or ')}.`;
}

function answer([status, { description, content }]) {
  const isProblem = Object.keys(content ?? {}).every((type) => type === 'application/problem+json');
  const title = element('h4', [code(status), ` ${description ?? ''}`]);
  return isProblem ? [title] : [title, ...contentOf(content)];
}

function operationElement(path, method, operation) {
  const { summary = '', description = '', parameters = [], requestBody, responses = {}, security } = operation;
  const body = [element('p', description), element('p', securityOf(security), 'quiet')];
  if (parameters.length > 0) {
    body.push(
      element('h3', 'Parameters'),
      table(
        ['Name', 'In', 'Type', ''],
        parameters.map(({ name, in: place, schema, required, description: text = '', example }) => [
          code(name),
          place,
          typeOf(schema),
          `${required ? '' : '(optional) '}${text}${example === undefined ? '' : ` For example ${example}.`}`,
        ]),
      ),
    );
  }
  if (requestBody) body.push(element('h3', 'Body'), ...contentOf(requestBody.content));
  body.push(element('h3', 'Answers'), ...Object.entries(responses).flatMap(answer));
  const head = element('summary', [
    element('span', method.toUpperCase(), 'method'),
    code(path),
    element('span', ` ${summary}`, 'quiet'),
  ]);
  const made = element('details', [head, element('div', body, 'body')]);
  made.dataset.words = `${method} ${path} ${summary} ${description}`.toLowerCase();
  return made;
}

function show({ info, tags, paths, components }) {
  named = components.schemas;
  byId('version').textContent = info.version;
  byId('description').textContent = info.description;
  const sections = new Map(
    tags.map(({ name, description }) => [
      name,
      element('section', [element('h2', name), element('p', description, 'quiet')]),
    ]),
  );
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      sections.get(operation.tags?.[0])?.append(operationElement(path, method, operation));
    }
  }
  byId('operations').replaceChildren(...[...sections.values()].filter((section) => section.querySelector('details')));
}

byId('filter').addEventListener('input', () => {
  const wanted = byId('filter').value.toLowerCase();
  for (const section of byId('operations').children) {
    const operations = [...section.querySelectorAll('details')];
    for (const operation of operations) operation.hidden = !operation.dataset.words.includes(wanted);
    section.hidden = operations.every((operation) => operation.hidden);
  }
});

try {
  const response = await fetch('/openapi.json');
  show(await response.json());
} catch {
  // Shown.
  byId('problem').textContent = 'The document cannot be read.';
  byId('problem').hidden = false;
}
