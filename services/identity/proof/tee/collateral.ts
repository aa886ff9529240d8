import { rfc3339 } from '@plat/core'
import type { ProofFailure, Unreachable } from '../check.ts'
import { TrustDocument, type TrustParts } from '../parts/trust-document.ts'
import { failed, isStop, unreachable } from '../parts/verdict.ts'
import { type Certificate, readPemCertificates } from '../x509/certificate.ts'
import { type Crl, readCrl, serialOf, subjectOf } from '../x509/crl.ts'
import type { Quote } from './quote.ts'
import { isSignedByIntel, readTcbInfo, type TcbInfo, tcbStatusesOf } from './tcb-info.ts'
import type { TdxQuote } from './tdx.ts'

/** How far clocks may differ, in milliseconds: collateral from the future is refused beyond it. */
const SKEW_MS = 5 * 60 * 1000

export interface CollateralSettings {
  /** Files or URLs of revocation lists; nothing is checked where there is none. */
  readonly snpCrls: readonly string[]
  readonly tdxCrls: readonly string[]
  /** Files or URLs of signed TCB info, and of the chain of its signer; nothing is checked without the first. */
  readonly tcbInfos: readonly string[]
  readonly tcbSigner: string
  readonly tcbStatuses: ReadonlySet<string>
  /** Longest time since collateral was issued, in milliseconds; 0 for as long as its issuer says. */
  readonly maxAgeMs: number
}

interface Dated {
  readonly issuedAt: number
  readonly nextUpdate: number
}

interface Source<T> {
  readonly location: string
  readonly document: TrustDocument<T>
}

type Stop = ProofFailure | Unreachable

interface Trust {
  readonly roots: readonly Certificate[]
  readonly now: number
}

/** Published by the vendors after a machine was made: revoked certificates, and outdated firmware. */
export class Collateral {
  readonly #settings: CollateralSettings
  readonly #snpCrls: readonly Source<Crl>[]
  readonly #tdxCrls: readonly Source<Crl>[]
  readonly #tcbInfos: readonly Source<TcbInfo>[]
  readonly #tcbSigner: Source<readonly Certificate[]>

  constructor(settings: CollateralSettings, parts: TrustParts) {
    const sources = <T>(locations: readonly string[], parse: (bytes: Uint8Array) => T): readonly Source<T>[] =>
      locations.map((location) => ({ location, document: new TrustDocument(location, parse, parts) }))
    const { snpCrls, tdxCrls, tcbInfos, tcbSigner } = settings
    const readChain = (bytes: Uint8Array) => readPemCertificates(Buffer.from(bytes).toString('latin1'), tcbSigner)
    this.#settings = settings
    this.#snpCrls = sources(snpCrls, readCrl)
    this.#tdxCrls = sources(tdxCrls, readCrl)
    this.#tcbInfos = sources(tcbInfos, readTcbInfo)
    this.#tcbSigner = { location: tcbSigner, document: new TrustDocument(tcbSigner, readChain, parts) }
  }

  /** Judges a verified SEV-SNP report. AMD publishes no list for the certificates of chips: one for them is used where there is one. */
  judgeSnp({ chain }: Quote, trust: Trust): Promise<Stop | null> {
    return this.#judgeChain(
      this.#snpCrls,
      { certificates: withAuthorities(chain, trust.roots), mustCoverLeaf: false },
      trust,
    )
  }

  /** Judges a verified TDX quote: its certificates, then the TCB status of its platform. */
  async judgeTdx(quote: TdxQuote, trust: Trust): Promise<Stop | null> {
    const stop = await this.#judgeChain(this.#tdxCrls, { certificates: quote.chain, mustCoverLeaf: true }, trust)
    return stop ?? (await this.#judgeTcb(quote, trust))
  }

  async #judgeTcb(quote: TdxQuote, trust: Trust): Promise<Stop | null> {
    if (this.#tcbInfos.length === 0) return null
    const infos = await this.#readAll(this.#tcbInfos, trust.now)
    if (isStop(infos)) return infos
    const { location, document } = this.#tcbSigner
    const signer = await document.read()
    if (signer === null) return unreachable(`${location}: the certificates of the TCB info cannot be read`)
    const unsigned = infos.findIndex((info) => !isSignedByIntel(info, signer, trust))
    if (unsigned >= 0) return unreachable(`${this.#tcbInfos[unsigned]?.location}: the TCB info is not signed by Intel`)
    const revoked = await this.#judgeChain(
      this.#tdxCrls,
      { certificates: [...signer, ...trust.roots], mustCoverLeaf: true },
      trust,
    )
    if (revoked !== null)
      return unreachable(`${location}: the signer of the TCB info is revoked or not covered by a revocation list`)
    const statuses = tcbStatusesOf(quote, infos)
    if ('fault' in statuses) return failed(statuses.fault)
    const refused = statuses.find((status) => !this.#settings.tcbStatuses.has(status))
    return refused === undefined ? null : failed(`the TCB status ${refused} is not one of -tee-tdx-tcb-statuses`)
  }

  /** Each authority above the leaf must have a current list of its issuer, and with `mustCoverLeaf` the leaf too. */
  async #judgeChain(
    sources: readonly Source<Crl>[],
    { certificates, mustCoverLeaf }: { readonly certificates: readonly Certificate[]; readonly mustCoverLeaf: boolean },
    { now }: Trust,
  ): Promise<Stop | null> {
    if (sources.length === 0) return null
    const crls = await this.#readAll(sources, now)
    if (isStop(crls)) return crls
    for (const [at, certificate] of certificates.entries()) {
      const issuer = certificates.find(({ x509 }) => certificate.x509.checkIssued(x509))
      const name = issuer === undefined ? null : subjectOf(issuer)
      const found = name === null ? -1 : crls.findIndex((crl) => Buffer.from(crl.issuer).equals(name))
      const crl = crls[found]
      if (crl === undefined || issuer === undefined) {
        if (at === 0 && !mustCoverLeaf) continue
        return failed(`no revocation list of the issuer of ${certificate.x509.subject} is configured`)
      }
      if (!crl.isSignedBy(issuer.x509.publicKey)) {
        return unreachable(`${sources[found]?.location}: the revocation list is not signed by its issuer`)
      }
      if (crl.revoked.has(serialOf(certificate))) return failed(`${certificate.x509.subject} is revoked`)
    }
    return null
  }

  async #readAll<T extends Dated>(sources: readonly Source<T>[], now: number): Promise<readonly T[] | Unreachable> {
    const values: T[] = []
    for (const { location, document } of sources) {
      const value = await document.read()
      if (value === null) return unreachable(`${location}: the collateral cannot be read`)
      const fault = ageFault(value, now, this.#settings.maxAgeMs)
      if (fault !== null) return unreachable(`${location}: ${fault}`)
      values.push(value)
    }
    return values
  }
}

function ageFault({ issuedAt, nextUpdate }: Dated, now: number, maxAgeMs: number): string | null {
  if (issuedAt > now + SKEW_MS) return `the collateral is from the future: issued at ${rfc3339(issuedAt)}`
  if (nextUpdate <= now) return `the collateral expired at ${rfc3339(nextUpdate)}: fetch the next one`
  if (maxAgeMs > 0 && now - issuedAt > maxAgeMs) {
    return `the collateral of ${rfc3339(issuedAt)} is older than -tee-collateral-max-age: fetch a newer one`
  }
  return null
}

/** A path ends at the first root that is trusted, and AMD's intermediate authorities are roots too: follows them to the top. */
function withAuthorities(chain: readonly Certificate[], roots: readonly Certificate[]): readonly Certificate[] {
  const whole = [...chain]
  for (let last = whole.at(-1); last !== undefined; last = whole.at(-1)) {
    const below = last
    const above = roots.find(
      (root) => !whole.includes(root) && below.x509.checkIssued(root.x509) && below.x509.verify(root.x509.publicKey),
    )
    if (above === undefined) return whole
    whole.push(above)
  }
  return whole
}
