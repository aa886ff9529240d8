import { X509Certificate } from 'node:crypto'
import { rootCertificates } from 'node:tls'
import { isObject, LruCache, parseStrict } from '@plat/core'
import type { Proof, ProofCheck, ProofContext, ProofFailure, ProofVerdict, Unreachable } from './check.ts'
import { readSignedData } from './cms/signed-data.ts'
import { type AllowList, allowList } from './parts/allow-list.ts'
import { TrustDocument, type TrustParts } from './parts/trust-document.ts'
import { established, failed, isStop, unreachable } from './parts/verdict.ts'
import { type Certificate, readCertificate, readPemCertificates } from './x509/certificate.ts'
import { verifyPath } from './x509/path.ts'

/** The roots above the signers of attested documents, out of those that Node ships, by SHA-256 of the certificate. */
const ROOT_FINGERPRINTS: ReadonlySet<string> = new Set([
  // DigiCert Global Root G2
  'CB:3C:CB:B7:60:31:E5:E0:13:8F:8D:D3:9A:23:F9:DE:47:FF:C3:5E:43:C1:14:4C:EA:27:D4:6A:5A:B1:CB:5F',
  // Microsoft RSA Root Certificate Authority 2017
  'C7:41:F7:0F:4B:2A:8D:88:BF:2E:71:C1:41:22:EF:53:EF:10:EB:A0:CF:A5:E6:4C:FA:20:F4:18:85:30:73:E0',
])

/** Names of signers: this one and those below it, one for each region. */
const SIGNER_NAME = /^([a-z0-9-]+\.)?metadata\.azure\.com$/
/** Issuers' certificates that are kept at most. */
const MAX_ISSUERS = 32
/** Issuers that are fetched for one message: Azure's signers stand two authorities below the root, and messages carry neither. */
const MAX_FETCHED = 3

export interface AzureSettings {
  /** File of roots (PEM); empty for those that are pinned here. */
  readonly roots: string
  /** Origin that certificates of issuers may be fetched from. */
  readonly issuers: string
  /** Subscriptions that may prove: `<subscription>` or `<subscription>=<namespace>`. */
  readonly subscriptions: readonly string[]
}

/** Proof by the attested document of Azure's metadata service: PKCS7 in `signature`, requested with the nonce. */
export function azureImdsCheck(settings: AzureSettings, parts: TrustParts): ProofCheck {
  const check = new AzureImdsCheck(settings, parts)
  return { name: 'azure-imds', nonce: 'required', verify: (proof, context) => check.verify(proof, context) }
}

class AzureImdsCheck {
  readonly #settings: AzureSettings
  readonly #parts: TrustParts
  readonly #subscriptions: AllowList
  readonly #roots: TrustDocument<readonly Certificate[]> | null
  /** By URL. */
  readonly #issuers = new LruCache<string, TrustDocument<Certificate>>({ maxEntries: MAX_ISSUERS })

  constructor(settings: AzureSettings, parts: TrustParts) {
    const { roots } = settings
    const parse = (bytes: Uint8Array) => readPemCertificates(Buffer.from(bytes).toString('latin1'), roots)
    this.#settings = settings
    this.#parts = parts
    this.#subscriptions = allowList('azure-imds-subscriptions', settings.subscriptions)
    this.#roots = roots === '' ? null : new TrustDocument(roots, parse, parts)
  }

  async verify({ signature, nonce }: Proof, context: ProofContext): Promise<ProofVerdict> {
    if (signature === null) return failed('it carries no signature')
    const message = readSignedData(Buffer.from(signature, 'base64'))
    if (message === null) return failed('the signature is not a PKCS7 message of one RSA signer with its content')
    const signer = message.certificates.find((certificate) => message.signedBy(certificate))
    const leaf = signer === undefined ? null : readCertificate(signer.raw)
    if (leaf === null) return failed('the message signature is wrong')
    const others = message.certificates.map(({ raw }) => readCertificate(raw)).filter((each) => each !== null)
    const fault = await this.#signerFault(leaf, others)
    return fault ?? this.#judge(message.content, nonce, context)
  }

  /** The certificate that signed is the one that is judged, whatever else travels in the message. */
  async #signerFault(leaf: Certificate, others: readonly Certificate[]): Promise<ProofFailure | Unreachable | null> {
    if (!leaf.dnsNames.some((name) => SIGNER_NAME.test(name)))
      return failed('the signer certificate is not that of Azure')
    if (leaf.isCa || leaf.keyUsage?.has('digitalSignature') === false) {
      return failed('the signer certificate may not sign documents')
    }
    const anchors = this.#roots === null ? pinnedRoots() : await this.#roots.read()
    if (anchors === null) return unreachable('the roots cannot be read')
    const now = this.#parts.clock.now()
    const intermediates = [...others]
    let below = leaf
    for (let fetched = 0; ; fetched++) {
      const path = verifyPath(leaf, { intermediates, anchors, now })
      if (path.kind === 'path') return null
      const issuer = fetched < MAX_FETCHED ? await this.#issuerOf(below) : null
      if (issuer === null) return failed(path.reason)
      if (isStop(issuer)) return issuer
      intermediates.unshift(issuer)
      below = issuer
    }
  }

  /** The issuer by the address in the certificate (RFC 5280 section 4.2.2.1), if it is at the one origin that is allowed. */
  async #issuerOf({ x509 }: Certificate): Promise<Certificate | Unreachable | null> {
    const texts = Array.from((x509.infoAccess ?? '').matchAll(/^CA Issuers - URI:(\S+)$/gm), ([, text = '']) => text)
    const allowed = (url: URL | null) => url?.origin === this.#settings.issuers && url.username === ''
    const url = texts.map((text) => URL.parse(text)).find(allowed) ?? null
    if (url === null) return null
    let document = this.#issuers.get(url.href)
    if (document === undefined) {
      document = new TrustDocument(url.href, readIssuer, this.#parts)
      this.#issuers.set(url.href, document)
    }
    return (await document.read()) ?? unreachable('the issuer of the signer certificate cannot be fetched')
  }

  #judge(content: Uint8Array, nonce: string | null, context: ProofContext): ProofVerdict {
    const document = readDocument(content)
    if (document === null) return failed('the content is not an attested document')
    if (document.nonce !== nonce) return failed('the document carries another nonce')
    if (this.#parts.clock.now() >= document.expiresAt) return failed('the document has expired')
    if (!this.#subscriptions(document.subscription, context.namespace)) {
      return failed('the subscription may not prove this session')
    }
    return established({
      check: 'azure-imds',
      attestation: 'attested-document',
      platform: 'azure',
      workload: `subscriptions/${document.subscription}/virtualMachines/${document.vm}`,
    })
  }
}

function readIssuer(bytes: Uint8Array): Certificate {
  const certificate = readCertificate(bytes)
  if (certificate === null) throw new Error('no certificate')
  return certificate
}

let pinned: readonly Certificate[] | null = null

function pinnedRoots(): readonly Certificate[] {
  pinned ??= rootCertificates
    .map((pem) => new X509Certificate(pem))
    .filter(({ fingerprint256 }) => ROOT_FINGERPRINTS.has(fingerprint256))
    .map(({ raw }) => readIssuer(raw))
  return pinned
}

interface AttestedDocument {
  readonly nonce: unknown
  readonly subscription: string
  readonly vm: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

/** Times of the document, such as `11/28/26 06:16:17 -0000`. */
const TIME = /^(\d\d)\/(\d\d)\/(\d\d) (\d\d):(\d\d):(\d\d) [+-]0000$/

function readDocument(content: Uint8Array): AttestedDocument | null {
  let value: unknown
  try {
    value = parseStrict(content)
  } catch {
    return null
  }
  if (!isObject(value) || !isObject(value.timeStamp)) return null
  const { nonce, subscriptionId, vmId } = value
  const { expiresOn } = value.timeStamp
  const time = typeof expiresOn === 'string' ? TIME.exec(expiresOn) : null
  if (typeof subscriptionId !== 'string' || typeof vmId !== 'string' || time === null) return null
  const [month = 0, day = 0, year = 0, hour = 0, minute = 0, second = 0] = time.slice(1).map(Number)
  const expiresAt = Date.UTC(2000 + year, month - 1, day, hour, minute, second)
  return { nonce, subscription: subscriptionId, vm: vmId, expiresAt }
}
