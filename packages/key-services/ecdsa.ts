import type { AlgorithmName } from '@plat/keys'

/** Length of each number of a P-256 signature, in bytes. */
const NUMBER_BYTES = 32

/** Converts a signature to the form of JOSE: services return ECDSA in DER (RFC 3279), JOSE has two numbers of fixed length. */
export function joseSignature(algorithm: AlgorithmName, signature: Uint8Array): Uint8Array {
  return algorithm === 'ES256' ? fromDer(signature) : signature
}

/** Returns the bytes unchanged if they are no sequence of two integers; they do not verify then. */
function fromDer(signature: Uint8Array): Uint8Array {
  const [tag, length, ...rest] = signature
  if (tag !== 0x30 || length !== rest.length) return signature
  const numbers: Buffer[] = []
  for (let at = 0; at < rest.length; ) {
    const [kind, size = 0] = rest.slice(at, at + 2)
    const number = Buffer.from(rest.slice(at + 2, at + 2 + size))
    const digits = number[0] === 0 ? number.subarray(1) : number
    if (kind !== 0x02 || number.length !== size || digits.length > NUMBER_BYTES) return signature
    numbers.push(Buffer.concat([Buffer.alloc(NUMBER_BYTES - digits.length), digits]))
    at += 2 + size
  }
  return numbers.length === 2 ? Buffer.concat(numbers) : signature
}
