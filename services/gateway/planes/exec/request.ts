import { JsonError, MESSAGE_LIMITS, parseStrict, pathOfTarget } from '@plat/core'
import type { Body } from '../../call/index.ts'
import { isObject, parsedOrUndefined } from '../wire/json.ts'

const PATH = /^\/v1\/sessions\/([^/]+)\/exec$/

/** Whether a request is one of this plane: everything else under `/v1/sessions` is the admin API's. */
export function isExec({
  method,
  url = '',
}: {
  readonly method?: string | undefined
  readonly url?: string | undefined
}): boolean {
  return method === 'POST' && PATH.test(pathOfTarget(url))
}

/** The session that a path names, slashes in it percent-encoded; null: none. */
export function sessionIn(path: string): string | null {
  const [, id] = PATH.exec(path) ?? []
  if (id === undefined) return null
  try {
    return decodeURIComponent(id)
  } catch {
    return null
  }
}

/** What code is run, and with what: a JSON object. */
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

/** A text says what is wrong with the body. */
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

/** Where the texts of this plane's requests stand: code and whatever goes with it may hold what must not pass. */
export const execTexts = {
  where: {},
  rewritten: (_: Body, bytes: Uint8Array): Body => new ExecBody(bytes),
  repeated: () => [],
}
