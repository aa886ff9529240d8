import type { Certificate } from '../x509/certificate.ts'

/** What verified evidence of a trusted execution environment says. */
export interface Quote {
  /** 64 bytes that the machine put in: the nonce stands here. */
  readonly reportData: Uint8Array
  /** What was launched, in lower-case hexadecimal. */
  readonly measurement: string
  /** The verified path of the platform's certificate, leaf first. */
  readonly chain: readonly Certificate[]
}
