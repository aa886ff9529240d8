import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'

/** Accepted content codings. */
export const ACCEPT_ENCODING = 'gzip, br, deflate'

type Unpack = (bytes: Uint8Array, options: { readonly maxOutputLength: number }) => Promise<Uint8Array>

const codings: Readonly<Record<string, Unpack>> = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  br: promisify(brotliDecompress),
  deflate: promisify(inflate),
}

/**
 * Decodes the content coding of a body (RFC 9110, section 8.4). Stops after `maxBytes` of output. Returns a string with the reason if
 * it cannot.
 */
export async function unpacked(bytes: Uint8Array, coding: string, maxBytes: number): Promise<Uint8Array | string> {
  const name = coding.trim().toLowerCase()
  if (name === '' || name === 'identity' || bytes.length === 0) return bytes
  const unpack = Object.hasOwn(codings, name) ? codings[name] : undefined
  if (unpack === undefined) return 'its content coding is not supported'
  try {
    return await unpack(bytes, { maxOutputLength: maxBytes })
  } catch (error) {
    const isTooLarge = error instanceof RangeError && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
    return isTooLarge ? `it is larger than ${maxBytes} bytes` : 'its content coding is broken'
  }
}
