/**
 * The bytes of base64url text (RFC 4648 section 5), or null unless it is exactly what `encodeBase64url` writes: no other
 * alphabet, no padding, no white space, no unused bits. So one value has one text.
 */
export function decodeBase64url(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : null
}

/** Base64url without padding. */
export function encodeBase64url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url')
}
