import { type TSchema, Type } from 'typebox'

/** No fields beyond those of the schema. */
export const closed = { additionalProperties: false } as const

/** Names of objects in one namespace, of servers and of tools: a DNS label. */
export const LABEL_PATTERN = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'

/** As Kubernetes has them for the standard condition. */
const CONDITION_TYPE_PATTERN =
  '^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$'
const CONDITION_REASON_PATTERN = '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$'

const JURISDICTION_PATTERN = '^[A-Za-z]{2}(-[A-Za-z0-9]{1,8})*$'
const DLP_PROFILE_PATTERN = '^[a-z0-9][a-z0-9-]{0,62}$'
const QUANTITY_PATTERN = '^[+-]?([0-9]+|[0-9]+\\.[0-9]*|\\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$'
/** Go's form: `15m`, `1h30m`, `250ms`. */
const DURATION_PATTERN = '^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$'

const INT32_MAX = 2 ** 31 - 1

/** A bounded string: every string has a limit, so that rules over it stay cheap on every API server. */
export const text = (description: string, options: object = {}) =>
  Type.String({ maxLength: 1024, description, ...options })
export const label = (description: string) => Type.String({ maxLength: 63, pattern: LABEL_PATTERN, description })
export const texts = (description: string, options: object = {}) =>
  Type.Array(Type.String({ maxLength: 512 }), { maxItems: 256, description, ...options })
export const flag = (description: string) => Type.Boolean({ description })
export const count = (description: string, options: object = {}) =>
  Type.Integer({ format: 'int32', minimum: 0, maximum: INT32_MAX, description, ...options })
export const longCount = (description: string) => Type.Integer({ format: 'int64', minimum: 0, description })
export const jurisdiction = () =>
  text('Where it runs: ISO 3166 code.', { maxLength: 64, pattern: JURISDICTION_PATTERN })
export const jurisdictionCodes = (description: string) =>
  Type.Array(Type.String({ maxLength: 64, pattern: JURISDICTION_PATTERN }), {
    maxItems: 256,
    description: `${description} ISO 3166 codes such as DE or US-CA, and EU.`,
  })
export const dlpProfile = () =>
  text('Gateway DLP profile; `none` disables DLP.', { maxLength: 63, pattern: DLP_PROFILE_PATTERN })
export const duration = (description: string, options: object = {}) =>
  text(description, { maxLength: 64, pattern: DURATION_PATTERN, ...options })

/** One of several words. */
export const oneOf = <const T extends string[]>(words: readonly [...T], description: string, options: object = {}) =>
  Type.Enum<T>(words, { type: 'string', description, ...options })

/** A decimal number with an optional suffix, as text or as a whole number (docs/spec/crds.md). */
export const quantity = (description: string) =>
  Type.Unsafe<string | number>({
    'x-kubernetes-int-or-string': true,
    maxLength: 64,
    pattern: QUANTITY_PATTERN,
    description,
  })

/** A key of a Secret in the object's own namespace. */
export const secretKeyRef = (description: string) =>
  Type.Object(
    {
      name: Type.String({ minLength: 1, maxLength: 253, description: 'Name of the Secret.' }),
      key: Type.String({ minLength: 1, maxLength: 253, pattern: '^[-._a-zA-Z0-9]+$', description: 'Key in it.' }),
    },
    { ...closed, description },
  )

/** A list whose entries are identified by `keys`: duplicates are refused. */
export const listMap = <T extends TSchema>(items: T, keys: readonly string[], options: object = {}) =>
  Type.Array(items, {
    maxItems: 256,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': keys,
    ...options,
  })

/** The standard list of conditions of a status. */
export const conditions = () =>
  listMap(
    Type.Object(
      {
        type: Type.String({
          maxLength: 316,
          pattern: CONDITION_TYPE_PATTERN,
          description: 'CamelCase, optionally with a domain before it.',
        }),
        status: oneOf(['True', 'False', 'Unknown'], 'Does the condition hold?'),
        reason: Type.String({
          minLength: 1,
          maxLength: 1024,
          pattern: CONDITION_REASON_PATTERN,
          description: 'CamelCase word for machines.',
        }),
        message: Type.String({ maxLength: 32_768, description: 'A sentence for people; may be empty.' }),
        lastTransitionTime: Type.String({ format: 'date-time', maxLength: 64, description: 'When `status` changed.' }),
        observedGeneration: Type.Optional(longCount('Generation that the condition was based on.')),
      },
      closed,
    ),
    ['type'],
    { maxItems: 32 },
  )
