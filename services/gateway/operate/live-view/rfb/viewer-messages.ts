import { isForwarded } from './encodings.ts'
import { RfbError } from './error.ts'

/** Most encodings that a viewer may list. */
const MAX_ENCODINGS = 256
/** Longest text that a viewer may paste, in bytes. */
const MAX_CUT_TEXT_BYTES = 256 * 1024
const CUT_TEXT_HEAD_BYTES = 8
const ENCODINGS_HEAD_BYTES = 4
/** The longest message that is collected before it is forwarded. */
const MAX_HELD_BYTES = ENCODINGS_HEAD_BYTES + MAX_ENCODINGS * 4

const SET_PIXEL_FORMAT = 0
const SET_ENCODINGS = 2
const UPDATE_REQUEST = 3
const KEY_EVENT = 4
const POINTER_EVENT = 5
const CUT_TEXT = 6
const QEMU = 255
const QEMU_KEY_EVENT = 0

/**
 * Bytes of each message (RFC 6143, section 7.5), or of the head that says how long it is. Only messages of this table are known: what a server would
 * read as another length than this gateway could hide input in it.
 */
const LENGTHS: ReadonlyMap<number, number> = new Map([
  [SET_PIXEL_FORMAT, 20],
  [SET_ENCODINGS, ENCODINGS_HEAD_BYTES],
  [UPDATE_REQUEST, 10],
  [KEY_EVENT, 8],
  [POINTER_EVENT, 6],
  [CUT_TEXT, CUT_TEXT_HEAD_BYTES],
  [QEMU, 12],
])

/** Messages with which a viewer acts. */
const ACTS: ReadonlySet<number> = new Set([KEY_EVENT, POINTER_EVENT, CUT_TEXT, QEMU])

const NOTHING = Buffer.alloc(0)

/** The client's messages of one connection after the handshake, cut anywhere. Those with which a viewer acts are dropped unless it may act. */
export class ViewerMessages {
  readonly #mayAct: boolean
  /** The message that is being collected. */
  readonly #held = Buffer.alloc(MAX_HELD_BYTES)
  #have = 0
  /** 1: the type alone, which says how many follow. */
  #need = 1
  /** Bytes of a text that are still to come. */
  #textBytes = 0
  /** Messages with which the viewer acted, and those that were dropped. */
  inputs = 0
  dropped = 0

  constructor({ mayAct }: { readonly mayAct: boolean }) {
    this.#mayAct = mayAct
  }

  /** Returns what is forwarded of `chunk` and of what was held back before it. Throws RfbError, after which nothing more may be pushed. */
  push(chunk: Uint8Array): Buffer {
    if (this.#textBytes === 0 && this.#have + chunk.length < this.#need) {
      this.#have = append(this.#held, this.#have, chunk)
      return NOTHING
    }
    const out = Buffer.allocUnsafe(this.#have + chunk.length)
    let [at, end] = [0, 0]
    while (at < chunk.length) {
      if (this.#textBytes > 0) {
        const text = chunk.subarray(at, at + this.#textBytes)
        if (this.#mayAct) end = append(out, end, text)
        this.#textBytes -= text.length
        at += text.length
        continue
      }
      const part = chunk.subarray(at, at + this.#need - this.#have)
      this.#have = append(this.#held, this.#have, part)
      at += part.length
      if (this.#have === this.#need && this.#isWhole()) end = this.#forward(out, end)
    }
    return out.subarray(0, end)
  }

  /** Returns false, with more bytes needed, while the length is not known or not reached. */
  #isWhole(): boolean {
    const held = this.#held
    const type = held.readUInt8(0)
    const length = LENGTHS.get(type)
    if (length === undefined) throw new RfbError('viewer', `message type ${type} is not relayed`)
    if (this.#have < length) return this.#needs(length)
    if (type !== SET_ENCODINGS) return true
    const count = held.readUInt16BE(2)
    if (count > MAX_ENCODINGS) throw new RfbError('viewer', `more than ${MAX_ENCODINGS} encodings`)
    return this.#have === length + count * 4 || this.#needs(length + count * 4)
  }

  #needs(bytes: number): false {
    this.#need = bytes
    return false
  }

  /** Writes the collected message to `out`, if it is forwarded; returns the new end. */
  #forward(out: Buffer, end: number): number {
    const type = this.#held.readUInt8(0)
    const message = this.#held.subarray(0, this.#checked(type))
    this.#have = 0
    this.#need = 1
    if (!ACTS.has(type)) return append(out, end, message)
    if (type === CUT_TEXT) this.#textBytes = message.readUInt32BE(4)
    if (this.#mayAct) this.inputs++
    else this.dropped++
    return this.#mayAct ? append(out, end, message) : end
  }

  /** Returns the length of the collected message as it is forwarded. */
  #checked(type: number): number {
    const held = this.#held
    if (type === SET_ENCODINGS) return this.#filterEncodings()
    if (type === SET_PIXEL_FORMAT && ![8, 16, 32].includes(held.readUInt8(4)))
      throw new RfbError('viewer', 'a pixel must have 8, 16 or 32 bits')
    // A negative length announces formats of the extended clipboard, which is not relayed.
    if (type === CUT_TEXT && held.readUInt32BE(4) > MAX_CUT_TEXT_BYTES)
      throw new RfbError('viewer', `a text of more than ${MAX_CUT_TEXT_BYTES} bytes`)
    if (type === QEMU && held.readUInt8(1) !== QEMU_KEY_EVENT)
      throw new RfbError('viewer', 'a QEMU message that is no key event')
    return this.#have
  }

  #filterEncodings(): number {
    const held = this.#held
    let end = ENCODINGS_HEAD_BYTES
    for (let at = ENCODINGS_HEAD_BYTES; at < this.#have; at += 4) {
      const encoding = held.readInt32BE(at)
      if (isForwarded(encoding, this.#mayAct)) end = held.writeInt32BE(encoding, end)
    }
    held.writeUInt16BE((end - ENCODINGS_HEAD_BYTES) / 4, 2)
    return end
  }
}

function append(to: Buffer, end: number, bytes: Uint8Array): number {
  to.set(bytes, end)
  return end + bytes.length
}
