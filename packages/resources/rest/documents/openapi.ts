import { createHash } from 'node:crypto'
import { structuralSchemaOf } from '../../kinds/definitions.ts'
import { API_VERSION, isClusterKind, isKind, type Kind, kinds } from '../../kinds/kinds.ts'
import { GROUP, VERSION } from '../error.ts'

const DOCUMENT_PATH = `apis/${API_VERSION}`
const META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'

/** OpenAPI documents for `kubectl explain` and for clients that validate before sending. Created on first use. */
export class OpenApi {
  #document: object | null = null
  #hash = ''

  /** `/openapi/v3`: the index of the documents. */
  index(): object {
    this.document()
    return { paths: { [DOCUMENT_PATH]: { serverRelativeURL: `/openapi/v3/${DOCUMENT_PATH}?hash=${this.#hash}` } } }
  }

  /** The document of this API group. */
  document(): object {
    if (this.#document === null) {
      this.#document = documentOf(Object.keys(kinds).filter(isKind))
      this.#hash = createHash('sha256').update(JSON.stringify(this.#document)).digest('hex')
    }
    return this.#document
  }
}

function documentOf(all: readonly Kind[]): object {
  const schemas = all.flatMap((kind) => [
    [schemaName(kind), schemaOf(kind)] as const,
    [`${schemaName(kind)}List`, listSchemaOf(kind)] as const,
  ])
  return {
    openapi: '3.0.0',
    info: { title: 'plat resources', version: VERSION },
    paths: Object.fromEntries(all.flatMap(pathsOf)),
    components: { schemas: { ...Object.fromEntries(schemas), [META]: objectMeta } },
  }
}

/** `dev.plat.v1alpha1.Agent`. */
function schemaName(kind: Kind): string {
  return `${GROUP.split('.').toReversed().join('.')}.${VERSION}.${kind}`
}

function kindOf(kind: string): object {
  return { 'x-kubernetes-group-version-kind': [{ group: GROUP, version: VERSION, kind }] }
}

function reference(name: string): object {
  return { $ref: `#/components/schemas/${name}` }
}

function schemaOf(kind: Kind): object {
  const { properties, ...schema } = structuralSchemaOf(kind)
  const metadata = { description: 'Name, namespace, labels and annotations.', allOf: [reference(META)], default: {} }
  return { ...schema, properties: { ...properties, metadata }, ...kindOf(kind) }
}

function listSchemaOf(kind: Kind): object {
  const items = { type: 'array', items: reference(schemaName(kind)) }
  const text = { type: 'string' }
  return {
    type: 'object',
    required: ['items'],
    properties: { apiVersion: text, kind: text, metadata: { type: 'object' }, items },
    ...kindOf(`${kind}List`),
  }
}

const text = (description: string) => ({ type: 'string', description })
const texts = (description: string) => ({ type: 'object', additionalProperties: { type: 'string' }, description })

const objectMeta = {
  type: 'object',
  description: 'What every object has beside its spec.',
  properties: {
    name: text('Name of the object, a DNS label.'),
    namespace: text('Namespace of the object.'),
    labels: texts('Names and values that selectors choose by.'),
    annotations: texts('Notes of people and tools.'),
    uid: text('Distinguishes this object from an earlier one with the same name. Written by the server.'),
    resourceVersion: text('Changes with every write; an update must carry the last. Written by the server.'),
    generation: {
      type: 'integer',
      format: 'int64',
      description: 'Grows when the spec changes. Written by the server.',
    },
    creationTimestamp: { type: 'string', format: 'date-time', description: 'Written by the server.' },
  },
}

const parameter = (name: string, type = 'string') => ({ name, in: 'query', schema: { type, uniqueItems: true } })
const inPath = (name: string) => ({ name, in: 'path', required: true, schema: { type: 'string', uniqueItems: true } })

const WRITING = [parameter('dryRun'), parameter('fieldManager'), parameter('fieldValidation')]
const LISTING = [
  ...['labelSelector', 'fieldSelector', 'continue', 'resourceVersion'].map((name) => parameter(name)),
  ...['limit', 'timeoutSeconds'].map((name) => parameter(name, 'integer')),
  ...['watch', 'allowWatchBookmarks'].map((name) => parameter(name, 'boolean')),
]

interface Operation {
  readonly action: string
  readonly parameters: readonly object[]
  /** Accepted media types of the body; absent: no body. */
  readonly takes?: readonly string[]
  readonly answers?: string
}

function pathsOf(kind: Kind): readonly (readonly [path: string, item: object])[] {
  const operation = ({ action, parameters, takes = [], answers = schemaName(kind) }: Operation) => ({
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': { group: GROUP, version: VERSION, kind },
    parameters,
    ...(takes.length > 0 && { requestBody: { required: true, content: contents(takes, schemaName(kind)) } }),
    responses: { 200: { description: 'OK', content: contents(['application/json'], answers) } },
  })
  const { plural } = kinds[kind]
  const everywhere = `/apis/${API_VERSION}/${plural}`
  const here = isClusterKind(kind) ? everywhere : `/apis/${API_VERSION}/namespaces/{namespace}/${plural}`
  const list = operation({ action: 'list', parameters: LISTING, answers: `${schemaName(kind)}List` })
  const collection = {
    get: list,
    post: operation({ action: 'post', parameters: WRITING, takes: ['application/json'] }),
    delete: operation({ action: 'deletecollection', parameters: [...LISTING, parameter('dryRun')] }),
  }
  const one = {
    get: operation({ action: 'get', parameters: [] }),
    put: operation({ action: 'put', parameters: WRITING, takes: ['application/json'] }),
    patch: operation({
      action: 'patch',
      parameters: WRITING,
      takes: ['application/merge-patch+json', 'application/json-patch+json'],
    }),
  }
  const remove = operation({ action: 'delete', parameters: [parameter('dryRun')] })
  const scope = isClusterKind(kind) ? [] : [inPath('namespace')]
  return [
    ...(isClusterKind(kind) ? [] : [[everywhere, { get: list }] as const]),
    [here, { ...collection, parameters: scope }],
    [`${here}/{name}`, { ...one, delete: remove, parameters: [...scope, inPath('name')] }],
    [`${here}/{name}/status`, { ...one, parameters: [...scope, inPath('name')] }],
  ]
}

function contents(types: readonly string[], schema: string): object {
  return Object.fromEntries(types.map((type) => [type, { schema: reference(schema) }]))
}
