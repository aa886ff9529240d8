/** Domains of the partitions, by prefix of the region. */
const PARTITIONS: readonly (readonly [prefix: string, domain: string])[] = [
  ['cn-', 'amazonaws.com.cn'],
  ['eusc-', 'amazonaws.eu'],
  ['us-iso-', 'c2s.ic.gov'],
  ['us-isob-', 'sc2s.sgov.gov'],
  ['us-isof-', 'csp.hci.ic.gov'],
  ['eu-isoe-', 'cloud.adc-e.uk'],
]

/** Returns the domain of a region's endpoints; `configured` takes precedence unless it is empty. */
export function awsDomain(region: string, configured = ''): string {
  if (configured !== '') return configured
  return PARTITIONS.find(([prefix]) => region.startsWith(prefix))?.[1] ?? 'amazonaws.com'
}

/** Returns the origin of the security token service (STS) in a region; without a region that of the global one. */
export function stsOrigin(region: string, configured = ''): string {
  return region === '' ? 'https://sts.amazonaws.com' : `https://sts.${region}.${awsDomain(region, configured)}`
}

export interface RoleRequest {
  readonly roleArn: string
  /** At most 64 characters; CloudTrail records it. */
  readonly sessionName: string
  /** Token of an identity provider that the role trusts. */
  readonly token: string
  /** Absent: the default of STS, one hour. */
  readonly durationSeconds?: number
}

/** Returns the form of `AssumeRoleWithWebIdentity`. The request is not signed: the token is the credential. */
export function assumeRoleForm({ roleArn, sessionName, token, durationSeconds }: RoleRequest): Record<string, string> {
  return {
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: roleArn,
    RoleSessionName: sessionName,
    WebIdentityToken: token,
    ...(durationSeconds !== undefined && { DurationSeconds: String(durationSeconds) }),
  }
}
