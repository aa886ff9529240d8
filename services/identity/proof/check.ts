/** The proof of a mint request (docs/spec/broker-api.md, "Proof object"), decoded. Absent members are null. */
export interface Proof {
  /** Name of the check to run. */
  readonly check: string
  /** Sandbox ID or name. */
  readonly sandbox: string | null
  /** A nonce of `/v1/proof/nonce`. `Proofs` has redeemed it for this check before the check sees it. */
  readonly nonce: string | null
  /** A signed JWT: projected service-account token, JWT-SVID, cloud identity token. */
  readonly token: string | null
  /** AWS-style instance identity document, its signature, and the form of the signature. */
  readonly document: string | null
  readonly signature: string | null
  readonly format: string | null
  /** X.509-SVID chain, leaf first, base64 DER; empty when there is none. */
  readonly x5c: readonly string[]
  /** TEE evidence: JSON of any kind, undefined when there is none. The check decodes it. */
  readonly evidence: unknown
}

/** Session that the proof must agree with, and facts of the connection. */
export interface ProofContext {
  /** The session that is minted: what a check establishes must not contradict it. */
  readonly namespace: string
  readonly agent: string
  readonly session: string
  /** Leaf certificate that the client proved to hold in the TLS handshake, as DER; null without one. */
  readonly clientCertificate: Uint8Array | null
}

/** Result of a verified proof: claim `plat_substrate` of the token, and `substrate` of the response. */
export interface Substrate {
  readonly check: string
  readonly sandbox?: string
  readonly isolation?: string
  readonly attestation?: string
  readonly egress?: string
  readonly digest?: string
  readonly platform?: string
  readonly workload?: string
  readonly jurisdiction?: string
}

/** The proof is valid. The substrate contains only verified facts. */
export interface Established {
  readonly kind: 'established'
  readonly substrate: Substrate
}

/** The proof is invalid: 403. The reason is one line for the caller and never quotes the proof. */
export interface ProofFailure {
  readonly kind: 'failed'
  readonly reason: string
}

/** The trust anchors were unreachable: 503, never a success. */
export interface Unreachable {
  readonly kind: 'unreachable'
  readonly reason: string
}

export type ProofVerdict = Established | ProofFailure | Unreachable

/** One way to prove where a session runs. One file implements one check; `createProofs` knows the enabled ones. */
export interface ProofCheck {
  /** The name in `proof.check`: `kubernetes`, `spiffe`, … */
  readonly name: string
  /**
   * `required`: a proof must carry a nonce that was issued for this check. `none`: it issues none and takes none. `optional`:
   * the check judges by the form of the proof whether a nonce must be there; one that is there was redeemed.
   */
  readonly nonce: 'none' | 'optional' | 'required'
  /** Verifies a proof. A thrown error is a bug of the check: the mint answers 503, because nothing was established. */
  verify(proof: Proof, context: ProofContext): Promise<ProofVerdict>
}
