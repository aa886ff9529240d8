import { findSpan } from '@plat/core'
import type { Body } from '../../call/index.ts'
import type { Era } from './classify.ts'

/** The reserved members of `params._meta` of revision 2026-07-28. */
export const META_VERSION = 'io.modelcontextprotocol/protocolVersion'
export const META_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'

/** A session of an upstream, opened from the id that the client sent. */
export interface OpenSession {
  /** The upstream's own id. */
  readonly id: string
  /** `target.key` that the session was made with. */
  readonly target: string
}

/** What the plane knows of a request beyond the words that all planes share. Filled while reading, kept until the answer. */
export interface McpRequest {
  /** The JSON-RPC kind of a POST; GET is `listen`, DELETE is `end`. */
  readonly kind: 'request' | 'notification' | 'answer' | 'listen' | 'end'
  readonly era: Era
  readonly revision: string
  readonly method: string
  /** What `params` names: a tool, a prompt, a resource. */
  readonly name: string | null
  /** The JSON-RPC id as the client wrote it, so that an answer carries the same bytes. */
  readonly id: Uint8Array | null
  readonly session: OpenSession | null
  /** Members to cut out of the body before it goes upstream. */
  readonly withheld: readonly (readonly string[])[]
  /** `params._meta.progressToken` as the client wrote it. */
  readonly progressToken: Uint8Array | null
}

/** A message whose bytes passed the strict scanner. */
export class McpBody implements Body {
  readonly bytes: Uint8Array
  readonly value: unknown
  readonly #argumentsOnly: boolean
  #args: Uint8Array | null | undefined

  /** `argumentsOnly`: what is hashed and judged are the bytes of `params.arguments`, not the whole message. */
  constructor(bytes: Uint8Array, value: unknown, argumentsOnly: boolean) {
    this.bytes = bytes
    this.value = value
    this.#argumentsOnly = argumentsOnly
  }

  /** Looked for once: policy, record and redaction all ask. */
  get args(): Uint8Array | null {
    if (this.#args === undefined) {
      this.#args = this.#argumentsOnly ? slice(this.bytes, ['params', 'arguments']) : this.bytes
    }
    return this.#args
  }
}

/** The bytes of a member's value, as the sender wrote them. */
export function slice(bytes: Uint8Array, path: readonly string[]): Uint8Array | null {
  const span = findSpan(bytes, path)
  return span === null ? null : bytes.subarray(span[0], span[1])
}
