/**
 * Decodes base64url (RFC 4648, section 5). Returns null unless the text is exactly what `encodeBase64url` returns: no other alphabet, padding, white
 * space or unused bits. So each value has one encoding.
 */
export function decodeBase64url(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : null
}

export function encodeBase64url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url')
}
