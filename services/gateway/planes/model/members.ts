import { findSpan, type JsonObject } from '@plat/core'

const OPEN_BRACE = 0x7b

/** A JSON object in both forms: its bytes, which passed the strict scanner, and their value. */
interface Written {
  readonly bytes: Uint8Array
  readonly value: JsonObject
}

/** The bytes of an object with one member replaced, or added in front. Every other byte stays as it was. */
export function withMember({ bytes, value }: Written, name: string, json: string): Uint8Array {
  // A scan of the whole body is only worth it for a member that is there.
  const span = Object.hasOwn(value, name) ? findSpan(bytes, [name]) : null
  if (span !== null) return Buffer.concat([bytes.subarray(0, span[0]), Buffer.from(json), bytes.subarray(span[1])])
  const inside = bytes.indexOf(OPEN_BRACE) + 1
  const comma = Object.keys(value).length === 0 ? '' : ','
  const added = Buffer.from(`${JSON.stringify(name)}:${json}${comma}`)
  return Buffer.concat([bytes.subarray(0, inside), added, bytes.subarray(inside)])
}
