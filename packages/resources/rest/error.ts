import type { FieldProblem } from '../check.ts'
import { API_VERSION, type Kind, kinds } from '../kinds/kinds.ts'

/** The group of our kinds. */
export const [GROUP = '', VERSION = ''] = API_VERSION.split('/')

/** Statuses of the API, and the reasons by which clients distinguish them. */
const REASONS = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  408: 'Timeout',
  409: 'Conflict',
  410: 'Expired',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
} as const

export type RestStatus = keyof typeof REASONS

/** Further members of a Status. */
export interface FaultMore {
  readonly reason?: string
  readonly details?: object
}

/** A refusal of the resource API, sent as a Kubernetes Status. */
export class RestError extends Error {
  readonly status: RestStatus
  readonly #more: FaultMore

  /** `message`: one sentence for the caller. */
  constructor(status: RestStatus, message: string, more: FaultMore = {}) {
    super(message)
    this.status = status
    this.#more = more
  }

  /** The Status object. */
  body(): object {
    const { reason = REASONS[this.status], details } = this.#more
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: this.message,
      reason,
      ...(details && { details }),
      code: this.status,
    }
  }
}

/** Returns the error for a missing object. */
export function notFound(kind: Kind, name: string): RestError {
  const { plural } = kinds[kind]
  return new RestError(404, `${plural}.${GROUP} "${name}" not found`, { details: { name, group: GROUP, kind: plural } })
}

export function alreadyExists(kind: Kind, name: string): RestError {
  const { plural } = kinds[kind]
  return new RestError(409, `${plural}.${GROUP} "${name}" already exists`, {
    reason: 'AlreadyExists',
    details: { name, group: GROUP, kind: plural },
  })
}

/** `why`: the violated precondition. */
export function conflicting(kind: Kind, name: string, why: string): RestError {
  const { plural } = kinds[kind]
  const message = `Operation cannot be fulfilled on ${plural}.${GROUP} "${name}": ${why}`
  return new RestError(409, message, { details: { name, group: GROUP, kind: plural } })
}

/** Returns the error for an invalid object, with a cause for each field. */
export function invalid(kind: Kind, name: string, problems: readonly FieldProblem[]): RestError {
  const lines = problems.map(({ path, message }) => `${path || '<nil>'}: ${message}`)
  const reported = lines.length === 1 ? lines.join() : `[${lines.join(', ')}]`
  const causes = problems.map(({ path, message }) => ({
    reason: causeOf(message),
    message,
    field: path || '<nil>',
  }))
  return new RestError(422, `${kind}.${GROUP} "${name}" is invalid: ${reported}`, {
    details: { name, group: GROUP, kind, causes },
  })
}

/** Beginnings of messages, which are those of Kubernetes. */
const CAUSES: readonly (readonly [beginning: string, reason: string])[] = [
  ['Required value', 'FieldValueRequired'],
  ['Unsupported value', 'FieldValueNotSupported'],
  ['Duplicate value', 'FieldValueDuplicate'],
  ['Too long', 'FieldValueTooLong'],
  ['Too many', 'FieldValueTooMany'],
  ['Forbidden', 'FieldValueForbidden'],
]

function causeOf(message: string): string {
  const known = CAUSES.find(([beginning]) => message.startsWith(beginning))
  if (known !== undefined) return known[1]
  return message.includes(' must be of type ') ? 'FieldValueTypeInvalid' : 'FieldValueInvalid'
}
