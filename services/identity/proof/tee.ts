import { hash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { isObject } from '@plat/core'
import type { Proof, ProofCheck, ProofContext, ProofFailure, ProofVerdict, Unreachable } from './check.ts'
import { type AllowList, allowList } from './parts/allow-list.ts'
import { TrustDocument, type TrustParts } from './parts/trust-document.ts'
import { established, failed, isStop, unreachable } from './parts/verdict.ts'
import { Collateral, type CollateralSettings } from './tee/collateral.ts'
import { type TcbComponent, verifySnp } from './tee/snp.ts'
import { verifyTdx } from './tee/tdx.ts'
import { type Certificate, readPemCertificates, readX5c } from './x509/certificate.ts'

/** Folder of the roots that come with the broker. */
const SHIPPED = new URL('roots/', import.meta.url)

export interface TeeSettings {
  /** Files of roots (PEM); empty for those that come with the broker. */
  readonly snpRoots: string
  readonly tdxRoots: string
  /** MRSIGNER of the quoting enclave, lower-case hexadecimal. */
  readonly tdxQeSigner: string
  /** Measurements that may prove: `<kind>:<hex>` or `<kind>:<hex>=<namespace>`. */
  readonly measurements: readonly string[]
  /** Lowest security patch levels of SEV-SNP. */
  readonly snpMinTcb: ReadonlyMap<TcbComponent, number>
  readonly snpAllowMigrationAgent: boolean
  readonly tdxAllowSeptVe: boolean
  readonly collateral: CollateralSettings
}

/** Evidence whose signatures hold, before it is compared with the nonce and the measurements. */
interface Genuine {
  readonly reportData: Uint8Array
  readonly measurement: string
}

type Kind = 'sev-snp' | 'tdx'
type Roots = TrustDocument<readonly Certificate[]>

interface Trust {
  readonly roots: readonly Certificate[]
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** Returns the REPORT_DATA that binds evidence to a nonce: SHA-512 of the nonce's text. */
export function reportDataOf(nonce: string): Buffer {
  return hash('sha512', nonce, 'buffer')
}

/**
 * Proof by evidence of a confidential machine in `evidence`: `{kind: 'sev-snp', report, certificate}` or
 * `{kind: 'tdx', quote}`, bytes in base64. Shown is that the hardware is genuine, what it launched, and as far as a minimum TCB and
 * collateral are configured, that its firmware is recent and its certificates are not revoked.
 */
export function teeCheck(settings: TeeSettings, parts: TrustParts): ProofCheck {
  const check = new TeeCheck(settings, parts)
  return { name: 'tee', nonce: 'required', verify: (proof, context) => check.verify(proof, context) }
}

class TeeCheck {
  readonly #settings: TeeSettings
  readonly #parts: TrustParts
  readonly #measurements: AllowList
  readonly #roots: Readonly<Record<Kind, Roots>>
  readonly #collateral: Collateral

  constructor(settings: TeeSettings, parts: TrustParts) {
    this.#settings = settings
    this.#parts = parts
    this.#measurements = allowList('tee-measurements', settings.measurements)
    this.#roots = {
      'sev-snp': rootsOf(settings.snpRoots, 'amd.pem', parts),
      tdx: rootsOf(settings.tdxRoots, 'intel.pem', parts),
    }
    this.#collateral = new Collateral(settings.collateral, parts)
  }

  async verify({ evidence, nonce }: Proof, context: ProofContext): Promise<ProofVerdict> {
    const kind = isObject(evidence) ? evidence.kind : null
    if (!isObject(evidence) || (kind !== 'sev-snp' && kind !== 'tdx')) {
      return failed('the "kind" of the evidence must be sev-snp or tdx')
    }
    const quote = await this.#verifyQuote(kind, evidence)
    if (isStop(quote)) return quote
    if (nonce === null || !reportDataOf(nonce).equals(quote.reportData))
      return failed('the evidence is for another nonce')
    if (!this.#measurements(`${kind}:${quote.measurement}`, context.namespace)) {
      return failed('what was launched may not prove this session')
    }
    return established({ check: 'tee', attestation: kind, isolation: 'tee', digest: quote.measurement })
  }

  async #verifyQuote(
    kind: Kind,
    evidence: Readonly<Record<string, unknown>>,
  ): Promise<Genuine | ProofFailure | Unreachable> {
    const roots = await this.#roots[kind].read()
    if (roots === null) return unreachable('the roots cannot be read')
    const trust = { roots, now: this.#parts.clock.now() }
    return kind === 'tdx' ? this.#tdx(evidence, trust) : this.#snp(evidence, trust)
  }

  async #snp({ report, certificate }: Readonly<Record<string, unknown>>, trust: Trust) {
    const leaf = typeof certificate === 'string' ? readX5c(certificate) : null
    if (typeof report !== 'string' || leaf === null) {
      return failed('the evidence needs report and certificate in base64')
    }
    const { snpMinTcb: minTcb, snpAllowMigrationAgent: allowMigrationAgent } = this.#settings
    const evidence = { report: Buffer.from(report, 'base64'), certificate: leaf }
    const quote = verifySnp(evidence, { ...trust, minTcb, allowMigrationAgent })
    return typeof quote === 'string' ? failed(quote) : ((await this.#collateral.judgeSnp(quote, trust)) ?? quote)
  }

  async #tdx({ quote: bytes }: Readonly<Record<string, unknown>>, trust: Trust) {
    if (typeof bytes !== 'string') return failed('the evidence needs a quote in base64')
    const { tdxQeSigner: qeSigner, tdxAllowSeptVe: allowSeptVe } = this.#settings
    const quote = verifyTdx(Buffer.from(bytes, 'base64'), { ...trust, qeSigner, allowSeptVe })
    return typeof quote === 'string' ? failed(quote) : ((await this.#collateral.judgeTdx(quote, trust)) ?? quote)
  }
}

function rootsOf(file: string, shipped: string, parts: TrustParts): Roots {
  const location = file === '' ? fileURLToPath(new URL(shipped, SHIPPED)) : file
  return new TrustDocument(
    location,
    (bytes) => readPemCertificates(Buffer.from(bytes).toString('latin1'), location),
    parts,
  )
}
