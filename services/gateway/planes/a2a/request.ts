import { findSpan } from '@plat/core'
import type { Body, WireRequest } from '../../call/index.ts'
import { parsedOrUndefined } from '../wire/message.ts'
import type { MethodRow } from './methods.ts'
import type { A2aVersion } from './versions/tables.ts'

/** Names in a request, other than the agent. */
export interface NamedInRequest {
  readonly tasks: readonly string[]
  readonly contexts: readonly string[]
  /** Webhooks for notifications of a task. */
  readonly pushURLs: readonly string[]
  /** True if the response is an event stream. */
  readonly streams: boolean
  /** True if the agent may begin a task or a context: for a message to no task. */
  readonly begins: boolean
  /** Version that the caller speaks. */
  readonly version: A2aVersion
}

export const NOTHING_NAMED: NamedInRequest = {
  ...{ tasks: [], contexts: [], pushURLs: [] },
  ...{ streams: false, begins: false, version: '1.0' },
}

/** A parsed request in A2A 1.0, with the fields that only this plane uses. Stored in `wire.note` until the response. */
export class A2aRequest {
  /** Null for a card and for an unknown method. */
  readonly row: MethodRow | null
  readonly method: string
  /** The message; null if there is none. Its id is as received. */
  readonly bytes: Uint8Array | null
  readonly named: NamedInRequest
  /** The agent's page token; null for the first page. */
  readonly pageToken: string | null
  /** The parsed JSON-RPC id; null if there is none. */
  readonly idValue: string | number | null

  constructor(from: {
    readonly row?: MethodRow | null
    readonly method: string
    readonly bytes?: Uint8Array | null
    readonly named?: NamedInRequest
    readonly pageToken?: string | null
    readonly idValue?: string | number | null
  }) {
    this.row = from.row ?? null
    this.method = from.method
    this.bytes = from.bytes ?? null
    this.named = from.named ?? NOTHING_NAMED
    this.pageToken = from.pageToken ?? null
    this.idValue = from.idValue ?? null
  }

  /** The method if the caller speaks 0.3, else null. */
  get legacy(): string | null {
    return this.named.version === '0.3' ? this.method : null
  }

  /** The JSON-RPC id as the caller wrote it, for responses. */
  get id(): Uint8Array {
    const span = this.bytes === null ? null : findSpan(this.bytes, ['id'])
    return span === null || this.bytes === null ? NULL : this.bytes.subarray(span[0], span[1])
  }
}

const NULL = Buffer.from('null')

/** Returns the parsed request, or null for a request that was not read. */
export function noted({ note }: WireRequest): A2aRequest | null {
  return note instanceof A2aRequest ? note : null
}

/** A message that passed the strict JSON scanner. The whole message is judged and hashed. */
export class A2aBody implements Body {
  readonly bytes: Uint8Array
  readonly value: unknown

  constructor(bytes: Uint8Array, value: unknown = parsedOrUndefined(bytes)) {
    this.bytes = bytes
    this.value = value
  }

  get args(): Uint8Array {
    return this.bytes
  }

  get argsValue(): unknown {
    return this.value
  }
}
