export type JsonObject = { readonly [member: string]: unknown }

/** Tells a JSON object from every other JSON value. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A member of an object, and undefined for everything that is none. */
export function member(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

/** The value of JSON bytes; undefined where they are no JSON. */
export function parsedOrUndefined(json: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString('utf8'))
  } catch {
    return undefined
  }
}
