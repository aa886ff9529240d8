import { isObject, JsonError, MESSAGE_LIMITS, parseStrict, pathOfTarget } from '@plat/core'
import type { Body } from '../../call/index.ts'
import { parsedOrUndefined } from '../wire/message.ts'

const PATH = /^\/v1\/sessions\/([^/]+)\/exec$/

/** Returns true for requests of this plane. All others below `/v1/sessions` belong to the admin API. */
export function isExec({
  method,
  url = '',
}: {
  readonly method?: string | undefined
  readonly url?: string | undefined
}): boolean {
  return method === 'POST' && PATH.test(pathOfTarget(url))
}

/** Returns the session in a path, with slashes percent-encoded; null if there is none. */
export function sessionIn(path: string): string | null {
  const [, id] = PATH.exec(path) ?? []
  if (id === undefined) return null
  try {
    return decodeURIComponent(id)
  } catch {
    return null
  }
}

/** A request to run code: a JSON object. */
export class ExecBody implements Body {
  readonly bytes: Uint8Array
  #value: unknown

  constructor(bytes: Uint8Array, value?: object) {
    this.bytes = bytes
    this.#value = value
  }

  get value(): unknown {
    this.#value ??= parsedOrUndefined(this.bytes)
    return this.#value
  }

  get args(): Uint8Array {
    return this.bytes
  }

  get argsValue(): unknown {
    return this.value
  }
}

/** Returns the parsed body, or a string with the reason why it is invalid. */
export function execBody(bytes: Uint8Array, maxTimeoutSeconds: number): ExecBody | string {
  let value: unknown
  try {
    value = parseStrict(bytes, MESSAGE_LIMITS)
  } catch (error) {
    if (error instanceof JsonError) return `the body is not strict JSON: ${error.message}`
    throw error
  }
  if (!isObject(value)) return 'the body must be a JSON object'
  const { timeoutSeconds } = value
  const isTime = typeof timeoutSeconds === 'number' && Number.isInteger(timeoutSeconds) && timeoutSeconds >= 1
  if (timeoutSeconds !== undefined && !(isTime && timeoutSeconds <= maxTimeoutSeconds))
    return `timeoutSeconds must be a whole number from 1 to ${maxTimeoutSeconds} (exec.maxTimeoutSeconds)`
  return new ExecBody(bytes, value)
}

/** The texts in requests of this plane: all strings, including the code. */
export const execTexts = {
  where: {},
  rewritten: (_: Body, bytes: Uint8Array): Body => new ExecBody(bytes),
  repeated: () => [],
}
