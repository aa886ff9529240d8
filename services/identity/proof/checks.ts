import { closest, isTrustDomain } from '@plat/core'
import { awsIidCheck } from './aws-iid.ts'
import { azureImdsCheck } from './azure-imds.ts'
import type { ProofCheck } from './check.ts'
import type { ProofFlagValues } from './flags.ts'
import { gcpIdentityCheck } from './gcp-identity.ts'
import { type KubernetesSettings, kubernetesCheck } from './kubernetes.ts'
import { pairs } from './parts/allow-list.ts'
import type { FirstUse } from './parts/first-use.ts'
import type { TrustParts } from './parts/trust-document.ts'
import { requireDriverKeys, sandboxCheck } from './sandbox.ts'
import { spiffeCheck } from './spiffe.ts'
import { isTcbComponent, type TcbComponent } from './tee/snp.ts'
import { TCB_STATUSES } from './tee/tcb-info.ts'
import { teeCheck } from './tee.ts'

interface CheckParts extends TrustParts {
  readonly firstUse: FirstUse
}

/** The identity checks by name. A check reads its flags here and throws one line that names the flag that is wrong. */
const CHECKS: Readonly<Record<string, (flags: ProofFlagValues, parts: CheckParts) => ProofCheck>> = {
  spiffe: (flags, parts) =>
    spiffeCheck(
      { bundles: trustBundles(flags), audience: named(flags, 'spiffe-audience'), ids: flags['spiffe-ids'] },
      parts,
    ),
  kubernetes: (flags, parts) =>
    kubernetesCheck(
      {
        ...clusterSettings(flags),
        audience: named(flags, 'kubernetes-audience'),
        serviceAccounts: flags['kubernetes-service-accounts'],
      },
      parts,
    ),
  'gcp-identity': (flags, parts) =>
    gcpIdentityCheck(
      {
        keys: named(flags, 'gcp-identity-keys'),
        issuer: named(flags, 'gcp-identity-issuer'),
        audience: named(flags, 'gcp-identity-audience'),
        projects: flags['gcp-identity-projects'],
      },
      parts,
    ),
  'aws-iid': (flags, parts) =>
    awsIidCheck(
      {
        certificates: flags['aws-iid-certificates'],
        accounts: flags['aws-iid-accounts'],
        windowMs: flags['aws-iid-window'],
      },
      parts,
    ),
  'azure-imds': (flags, parts) =>
    azureImdsCheck(
      {
        roots: flags['azure-imds-roots'],
        issuers: new URL(httpUrl(flags, 'azure-imds-issuers')).origin,
        subscriptions: flags['azure-imds-subscriptions'],
      },
      parts,
    ),
  tee: (flags, parts) =>
    teeCheck(
      {
        snpRoots: flags['tee-snp-roots'],
        tdxRoots: flags['tee-tdx-roots'],
        tdxQeSigner: named(flags, 'tee-tdx-qe-signer').toLowerCase(),
        measurements: flags['tee-measurements'],
        snpMinTcb: minTcb(flags),
        snpAllowMigrationAgent: flags['tee-snp-allow-migration-agent'],
        tdxAllowSeptVe: flags['tee-tdx-allow-sept-ve'],
        collateral: {
          snpCrls: flags['tee-snp-crls'],
          tdxCrls: flags['tee-tdx-crls'],
          tcbInfos: flags['tee-tdx-tcb-info'],
          tcbSigner: flags['tee-tdx-tcb-info'].length === 0 ? '' : named(flags, 'tee-tdx-tcb-signer'),
          tcbStatuses: tcbStatuses(flags),
          maxAgeMs: flags['tee-collateral-max-age'],
        },
      },
      parts,
    ),
}

const MAX_LEVEL = 255

function minTcb(flags: ProofFlagValues): ReadonlyMap<TcbComponent, number> {
  const levels = new Map<TcbComponent, number>()
  for (const [component, level] of pairs('tee-snp-min-tcb', flags['tee-snp-min-tcb'])) {
    if (!isTcbComponent(component) || !/^\d{1,3}$/.test(level) || Number(level) > MAX_LEVEL) {
      throw new Error(
        `-tee-snp-min-tcb ${component}=${level}: must be bootloader, tee, snp, microcode or fmc, and a level from 0 to ${MAX_LEVEL}`,
      )
    }
    levels.set(component, Number(level))
  }
  return levels
}

function tcbStatuses(flags: ProofFlagValues): ReadonlySet<string> {
  const allowed: readonly string[] = TCB_STATUSES.filter((status) => status !== 'Revoked')
  for (const status of flags['tee-tdx-tcb-statuses']) {
    if (!allowed.includes(status))
      throw new Error(`-tee-tdx-tcb-statuses ${status}: must be one of ${allowed.join(', ')}`)
  }
  return new Set(flags['tee-tdx-tcb-statuses'])
}

/** How the flags say that the API server is reached, and what runtime classes isolate by. Throws one line naming the flag. */
export function clusterSettings(
  flags: ProofFlagValues,
): Pick<KubernetesSettings, 'api' | 'caFile' | 'tokenFile' | 'isolation'> {
  return {
    api: httpUrl(flags, 'kubernetes-api'),
    caFile: flags['kubernetes-ca-file'],
    tokenFile: named(flags, 'kubernetes-token-file'),
    isolation: pairs('kubernetes-isolation', flags['kubernetes-isolation']),
  }
}

/** Name of a driver: used in `proof.check`, and in flags before a "=". */
const DRIVER = /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/

/**
 * The checks that the flags enable. Rejects with one line that names the flag when a check is unknown or not configured.
 */
export async function createChecks(flags: ProofFlagValues, parts: CheckParts): Promise<readonly ProofCheck[]> {
  const checks = flags['identity-checks'].map((name) => {
    const build = Object.hasOwn(CHECKS, name) ? CHECKS[name] : undefined
    if (build === undefined) throw new Error(unknownCheck(name))
    return build(flags, parts)
  })
  const keys = pairs('sandbox-keys', flags['sandbox-keys'])
  for (const driver of flags['sandbox-check']) checks.push(await driverCheck(driver, { keys, flags, parts }))
  const [stray] = [...keys.keys()].filter((driver) => !flags['sandbox-check'].includes(driver))
  if (stray !== undefined) throw new Error(`-sandbox-keys ${stray}: no driver of -sandbox-check`)
  return checks
}

interface DriverParts {
  readonly keys: ReadonlyMap<string, string>
  readonly flags: ProofFlagValues
  readonly parts: TrustParts
}

async function driverCheck(driver: string, { keys, flags, parts }: DriverParts): Promise<ProofCheck> {
  if (!DRIVER.test(driver) || Object.hasOwn(CHECKS, driver)) {
    throw new Error(
      `-sandbox-check ${driver}: is not a valid driver name, or is that of a built-in check: use lower-case letters, digits, "." and "-"`,
    )
  }
  const path = keys.get(driver)
  if (path === undefined) throw new Error(`-sandbox-keys: name the keys of ${driver}: ${driver}=<file>`)
  await requireDriverKeys(path)
  return sandboxCheck({ driver, keys: path, audience: named(flags, 'sandbox-audience') }, parts)
}

function unknownCheck(name: string): string {
  const nearest = closest(name, Object.keys(CHECKS))
  return `-identity-checks ${name}: unknown check${nearest === null ? '' : `, did you mean ${nearest}?`}`
}

function trustBundles(flags: ProofFlagValues): ReadonlyMap<string, string> {
  const bundles = pairs('spiffe-bundles', flags['spiffe-bundles'])
  if (bundles.size === 0) throw new Error('-spiffe-bundles: name at least one: <trust domain>=<file or URL>')
  for (const domain of bundles.keys()) {
    if (!isTrustDomain(domain)) throw new Error(`-spiffe-bundles ${domain}: must be a SPIFFE trust domain`)
  }
  return bundles
}

/** Flags of one text. */
type TextFlag = { [K in keyof ProofFlagValues]: ProofFlagValues[K] extends string ? K : never }[keyof ProofFlagValues]

function named(flags: ProofFlagValues, name: TextFlag): string {
  if (flags[name] === '') throw new Error(`-${name}: must not be empty`)
  return flags[name]
}

function httpUrl(flags: ProofFlagValues, name: TextFlag): string {
  const url = URL.parse(flags[name])
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '') {
    throw new Error(`-${name} ${flags[name]}: must be an http or https URL without user`)
  }
  return flags[name]
}
