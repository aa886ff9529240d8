import type { Certificate } from '../x509/certificate.ts'

/** Content of verified evidence of a trusted execution environment. */
export interface Quote {
  /** 64 bytes chosen by the machine: contains the nonce. */
  readonly reportData: Uint8Array
  /** Measurement of the launched image, in lower-case hexadecimal. */
  readonly measurement: string
  /** The verified path of the platform's certificate, leaf first. */
  readonly chain: readonly Certificate[]
}
