import type { Duplex } from 'node:stream'
import { isObject, type JsonObject } from '@plat/core'
import type { Head } from '../../../call/index.ts'
import type { Sink } from '../../../pipeline/index.ts'
import { isStreamType, parsedOrUndefined } from '../../wire/message.ts'
import { eventData, SseSplitter } from '../../wire/sse.ts'

/** A JSON-RPC response with its bytes. */
export interface CollectedMessage {
  readonly json: Uint8Array
  readonly value: JsonObject
}

/** Collects the response to a nested request, up to a number of bytes. */
export class CollectedResponse implements Sink {
  headSent = false
  head: Head | null = null
  /** False: the response was cut. */
  complete = false
  isFull = false
  readonly #chunks: Uint8Array[] = []
  readonly #retain: (bytes: number) => boolean
  readonly #onFull: () => void

  /** Calls `onFull` when `retain` returns false for further bytes; these are dropped. */
  constructor(retain: (bytes: number) => boolean, onFull: () => void) {
    this.#retain = retain
    this.#onFull = onFull
  }

  reply(head: Head, _overheadMs: number, body: Uint8Array): void {
    this.open(head)
    this.write(body)
    this.end()
  }

  open(head: Head): void {
    this.headSent = true
    this.head = head
  }

  write(bytes: Uint8Array): void {
    if (this.isFull) return
    if (this.#retain(bytes.byteLength)) this.#chunks.push(bytes)
    else {
      this.isFull = true
      this.#onFull()
    }
  }

  end(): void {
    this.complete = true
  }

  tunnel(): Duplex | null {
    return null
  }

  destroy(): void {}

  /** Returns the JSON-RPC response; null if there is none. Of a stream it is the last message. */
  message(): CollectedMessage | null {
    const bytes = Buffer.concat(this.#chunks)
    const json = this.head !== null && isStreamType(this.head.headers) ? lastMessage(bytes) : bytes
    const value = json === null || json.length === 0 ? undefined : parsedOrUndefined(json)
    return json !== null && isObject(value) ? { json, value } : null
  }
}

function lastMessage(bytes: Uint8Array): Uint8Array | null {
  const splitter = new SseSplitter()
  const events = [...splitter.push(bytes), ...splitter.end()]
  for (const event of events.reverse()) {
    const data = eventData(event)
    if (data !== null && data.length > 0) return data
  }
  return null
}
