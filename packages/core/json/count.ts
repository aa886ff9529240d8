import { skipTrusted } from './trusted.ts'

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_ARRAY = 0x5b
const OPEN_OBJECT = 0x7b

/**
 * Counts the values and the member names of JSON, by its containers, commas and colons, without making any; stops as soon as there are more
 * than `most`.
 * The input must have passed `checkJson`.
 */
export function countValues(bytes: Uint8Array, most: number): number {
  let count = 1
  for (let at = 0; at < bytes.length && count <= most; ) {
    const byte = bytes[at]
    if (byte === QUOTE) {
      at = skipTrusted(bytes, at)
      continue
    }
    if (byte === COMMA || byte === COLON || byte === OPEN_ARRAY || byte === OPEN_OBJECT) count++
    at++
  }
  return count
}

/** Counts the members of all objects in a value that `JSON.parse` made. */
export function countMembers(value: unknown): number {
  const open: object[] = []
  const add = (inner: unknown) => {
    if (typeof inner === 'object' && inner !== null) open.push(inner)
  }
  add(value)
  let count = 0
  for (let container = open.pop(); container !== undefined; container = open.pop()) {
    if (Array.isArray(container)) {
      for (const element of container) add(element)
      continue
    }
    const names = Object.keys(container)
    count += names.length
    for (const name of names) add(Reflect.get(container, name))
  }
  return count
}
