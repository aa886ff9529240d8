import { isObject, type JsonObject } from '@plat/core'

/** Returns a response without the encoded content of its `data`, whose size and characters say nothing about texts. */
export function withoutEncoded(value: JsonObject, names: readonly string[]): JsonObject {
  const { data } = value
  if (!Array.isArray(data)) return value
  const isText = ([name]: readonly [string, unknown]) => !names.includes(name)
  return {
    ...value,
    data: data.map((one) => (isObject(one) ? Object.fromEntries(Object.entries(one).filter(isText)) : one)),
  }
}

/** Returns a redacted response with the encoded content of the original. */
export function withEncoded(redacted: unknown, { data: original }: JsonObject, names: readonly string[]): unknown {
  if (!isObject(redacted) || !Array.isArray(redacted.data) || !Array.isArray(original)) return redacted
  const encodedOf = (one: unknown) =>
    isObject(one) ? Object.fromEntries(Object.entries(one).filter(([name]) => names.includes(name))) : {}
  const data = redacted.data.map((one: unknown, at) => (isObject(one) ? { ...one, ...encodedOf(original[at]) } : one))
  return { ...redacted, data }
}
