/** One ASN.1 value in DER (X.690): a tag and its content, which may be in pieces. */
export function der(tag: number, ...pieces: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(pieces)
  const size = content.length
  if (size < 0x80) return Buffer.concat([Buffer.from([tag, size]), content])
  const octets =
    size < 0x100 ? [size] : size < 0x10000 ? [size >> 8, size & 255] : [size >> 16, (size >> 8) & 255, size & 255]
  return Buffer.concat([Buffer.from([tag, 0x80 | octets.length, ...octets]), content])
}

/** An object identifier in DER. */
export function derOid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  const octets = [first * 40 + second, ...rest].flatMap((arc) => {
    const digits = [arc & 127]
    for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128)) digits.unshift((left & 127) | 128)
    return digits
  })
  return der(0x06, Buffer.from(octets))
}
