import { verify } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Clock, isObject, parseStrict } from '@plat/core'
import type { Proof, ProofCheck, ProofContext, ProofFailure, ProofVerdict, Unreachable } from './check.ts'
import { readSignedData } from './cms/signed-data.ts'
import { type AllowList, allowList } from './parts/allow-list.ts'
import type { FirstUse } from './parts/first-use.ts'
import { TrustDocument, type TrustParts } from './parts/trust-document.ts'
import { established, failed, isStop, unreachable } from './parts/verdict.ts'
import { type Certificate, readPemCertificates } from './x509/certificate.ts'

/** The certificates of the regions as far as they are shipped. */
const SHIPPED = fileURLToPath(new URL('roots/aws', import.meta.url))
/** Maximum clock skew for the launch time of an instance, in milliseconds. */
const SKEW_MS = 60_000

export interface AwsSettings {
  /** Folder of the certificates that AWS publishes for its regions, `<region>.pem`; empty for those that are shipped. */
  readonly certificates: string
  /** Accounts that may prove: `<account>` or `<account>=<namespace>`. */
  readonly accounts: readonly string[]
  /** How long after its launch an instance may prove, in milliseconds. */
  readonly windowMs: number
}

/** Fields of an instance identity document that a signature covers. */
interface Instance {
  readonly account: string
  readonly region: string
  readonly id: string
  /** Launch, in milliseconds since the epoch. */
  readonly launchedAt: number
}

/**
 * Proof by an instance identity document of EC2: `format` `signature` (RSA over `document`) or `rsa2048` (PKCS7 that holds the
 * document). The document has neither nonce nor end, so an instance proves within a window after its launch, and one session.
 */
export function awsIidCheck(settings: AwsSettings, parts: TrustParts & { readonly firstUse: FirstUse }): ProofCheck {
  const check = new AwsIidCheck(settings, parts)
  return { name: 'aws-iid', nonce: 'none', verify: (proof, context) => check.verify(proof, context) }
}

class AwsIidCheck {
  readonly #settings: AwsSettings
  readonly #parts: TrustParts & { readonly firstUse: FirstUse }
  readonly #accounts: AllowList
  /** By region; only regions that have a file. */
  readonly #regions = new Map<string, TrustDocument<readonly Certificate[]>>()

  constructor(settings: AwsSettings, parts: TrustParts & { readonly firstUse: FirstUse }) {
    this.#settings = settings
    this.#parts = parts
    this.#accounts = allowList('aws-iid-accounts', settings.accounts)
  }

  async verify(proof: Proof, context: ProofContext): Promise<ProofVerdict> {
    const claim = readClaim(proof)
    if (isStop(claim)) return claim
    const { instance, signedBy } = claim
    // The region is only used to choose who must have signed the document that names it.
    const certificates = await this.#certificatesOf(instance.region)
    if (isStop(certificates)) return certificates
    const now = this.#parts.clock.now()
    const signer = certificates.find(signedBy)
    if (signer === undefined) return failed('the document signature is wrong')
    if (now > signer.notAfter || now < signer.notBefore) return failed('the certificate of the region has expired')
    return this.#judge(instance, context, this.#parts.clock)
  }

  async #judge(instance: Instance, context: ProofContext, clock: Clock): Promise<ProofVerdict> {
    const { account, region, id, launchedAt } = instance
    const until = launchedAt + this.#settings.windowMs
    if (clock.now() > until || launchedAt > clock.now() + SKEW_MS) return failed('the document is too old')
    if (!this.#accounts(account, context.namespace)) return failed('the account may not prove this session')
    const used = await this.#parts.firstUse.claim(`aws-iid ${account} ${region} ${id}`, context, until + SKEW_MS)
    if (used !== null) return used
    return established({
      check: 'aws-iid',
      attestation: 'instance-identity-document',
      platform: 'aws',
      workload: `accounts/${account}/regions/${region}/instances/${id}`,
    })
  }

  async #certificatesOf(region: string): Promise<readonly Certificate[] | ProofFailure | Unreachable> {
    const folder = this.#settings.certificates || SHIPPED
    const file = `${region}.pem`
    const files = await readdir(folder).catch(() => null)
    if (files === null) return unreachable('the certificates of the regions cannot be read')
    if (!files.includes(file)) return failed('no certificate of the region is trusted')
    let document = this.#regions.get(region)
    if (document === undefined) {
      const parse = (bytes: Uint8Array) => readPemCertificates(Buffer.from(bytes).toString('latin1'), file)
      document = new TrustDocument(path.join(folder, file), parse, this.#parts)
      this.#regions.set(region, document)
    }
    return (await document.read()) ?? unreachable('the certificates of the region cannot be read')
  }
}

interface Claim {
  readonly instance: Instance
  signedBy(certificate: Certificate): boolean
}

/** Decodes the proof, and determines who must have signed it. */
function readClaim({ document, signature, format }: Proof): Claim | ProofFailure {
  if (signature === null) return failed('it carries no signature')
  const bytes = Buffer.from(signature, 'base64')
  if (format === 'signature') return rawClaim(document, bytes)
  if (format === 'rsa2048') return messageClaim(document, bytes)
  return failed('"format" must be signature or rsa2048; the older pkcs7 form is signed with SHA-1')
}

function rawClaim(document: string | null, signature: Uint8Array): Claim | ProofFailure {
  if (document === null) return failed('it carries no document')
  const content = Buffer.from(document)
  const instance = readInstance(content)
  if (instance === null) return failed('the document is not an instance identity document')
  return {
    instance,
    signedBy: ({ x509: { publicKey } }) =>
      publicKey.asymmetricKeyType === 'rsa' && verify('sha256', content, publicKey, signature),
  }
}

function messageClaim(document: string | null, bytes: Uint8Array): Claim | ProofFailure {
  const message = readSignedData(bytes)
  if (message === null) return failed('the signature is not a PKCS7 message of one RSA signer with its content')
  // The signed content is what counts. A different document beside it is an attempt to substitute it.
  if (document !== null && !Buffer.from(document).equals(message.content)) {
    return failed('the document is not the content that is signed')
  }
  const instance = readInstance(message.content)
  if (instance === null) return failed('the document is not an instance identity document')
  return { instance, signedBy: ({ x509 }) => message.signedBy(x509) }
}

const REGION = /^[a-z]{2,4}(-[a-z]{2,12}){1,4}-[0-9]{1,2}$/
const LAUNCH = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/

function readInstance(bytes: Uint8Array): Instance | null {
  let value: unknown
  try {
    value = parseStrict(bytes)
  } catch {
    return null
  }
  if (!isObject(value)) return null
  const { accountId, region, instanceId, pendingTime } = value
  if (typeof accountId !== 'string' || typeof region !== 'string' || !REGION.test(region)) return null
  if (typeof instanceId !== 'string' || !/^i-[0-9a-f]{8,32}$/.test(instanceId)) return null
  if (typeof pendingTime !== 'string' || !LAUNCH.test(pendingTime)) return null
  const launchedAt = Date.parse(pendingTime)
  return Number.isNaN(launchedAt) ? null : { account: accountId, region, id: instanceId, launchedAt }
}
