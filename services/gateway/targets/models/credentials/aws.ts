import { readText } from '@plat/config'
import { withoutTrailing } from '@plat/core'
import type { AwsCredentials } from '@plat/http'
import {
  answerOf,
  CloudCredentialError,
  type CloudParts,
  form,
  type Lent,
  MAX_FILE_BYTES,
  membersOf,
  textIn,
} from './cloud.ts'

/**
 * Credentials of AWS, by the first that the environment has: access keys, the web identity of a service account, and with
 * `cloudCredentials.aws.imds` the role of the machine. Throws `CloudCredentialError`.
 */
export async function awsCredentials(parts: CloudParts): Promise<Lent<AwsCredentials>> {
  const { env, config } = parts
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env
  if (accessKeyId && secretAccessKey)
    return { value: { accessKeyId, secretAccessKey, sessionToken: env.AWS_SESSION_TOKEN || null }, expiresAt: null }
  if (env.AWS_WEB_IDENTITY_TOKEN_FILE && env.AWS_ROLE_ARN) return await assumedRole(parts)
  if (config.aws.imds) return await machineRole(parts)
  throw new CloudCredentialError(
    'AWS: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, or cloudCredentials.aws.imds',
  )
}

/** Domains of the partitions, by the beginning of a region. */
const PARTITIONS: readonly (readonly [prefix: string, suffix: string])[] = [
  ['cn-', 'amazonaws.com.cn'],
  ['eusc-', 'amazonaws.eu'],
  ['us-iso-', 'c2s.ic.gov'],
  ['us-isob-', 'sc2s.sgov.gov'],
  ['us-isof-', 'csp.hci.ic.gov'],
  ['eu-isoe-', 'cloud.adc-e.uk'],
]

/** The domain below which a region's endpoints are; `configured` (`cloudCredentials.aws.partitionDNSSuffix`) comes first. */
export function dnsSuffix(region: string, configured: string): string {
  if (configured !== '') return configured
  return PARTITIONS.find(([prefix]) => region.startsWith(prefix))?.[1] ?? 'amazonaws.com'
}

/** `AssumeRoleWithWebIdentity` is not signed: the token of the file is the credential, read anew each time because it rotates. */
async function assumedRole(parts: CloudParts): Promise<Lent<AwsCredentials>> {
  const { env, config } = parts
  const { region, partitionDNSSuffix, stsEndpoint } = config.aws
  const token = (await readText(env.AWS_WEB_IDENTITY_TOKEN_FILE ?? '', MAX_FILE_BYTES))?.trim()
  if (!token) throw new CloudCredentialError('AWS: the file of AWS_WEB_IDENTITY_TOKEN_FILE cannot be read')
  const host = region === '' ? 'sts.amazonaws.com' : `sts.${region}.${dnsSuffix(region, partitionDNSSuffix)}`
  const fields = {
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: env.AWS_ROLE_ARN ?? '',
    RoleSessionName: env.AWS_ROLE_SESSION_NAME || 'plat-gateway',
    WebIdentityToken: token,
  }
  // With this header STS answers JSON, as it does for everybody who asks for it.
  const text = await answerOf(parts, { whom: 'AWS STS', url: stsEndpoint || `https://${host}/`, ...form(fields) })
  const result = inside(
    inside(membersOf(text, 'AWS STS'), 'AssumeRoleWithWebIdentityResponse'),
    'AssumeRoleWithWebIdentityResult',
  )
  return lentOf(inside(result, 'Credentials'), { whom: 'AWS STS', session: 'SessionToken' })
}

function inside(members: Readonly<Record<string, unknown>>, name: string): Readonly<Record<string, unknown>> {
  const value = members[name]
  if (typeof value !== 'object' || value === null) throw new CloudCredentialError(`AWS STS gave no ${name}`)
  return { ...value }
}

/** How long the token of the metadata service lasts that the other requests are made with, in seconds. */
const IMDS_TOKEN_SECONDS = '300'

/** The role of the machine, from version 2 of its metadata service; there is no way back to version 1. */
async function machineRole(parts: CloudParts): Promise<Lent<AwsCredentials>> {
  const base = withoutTrailing(parts.env.AWS_EC2_METADATA_SERVICE_ENDPOINT || 'http://169.254.169.254', '/')
  const whom = 'the metadata service of AWS'
  const asked = { whom, purpose: 'metadata' } as const
  const token = await answerOf(parts, {
    ...asked,
    url: `${base}/latest/api/token`,
    method: 'PUT',
    headers: { 'x-aws-ec2-metadata-token-ttl-seconds': IMDS_TOKEN_SECONDS },
  })
  const headers = { 'x-aws-ec2-metadata-token': token.trim() }
  const roles = `${base}/latest/meta-data/iam/security-credentials/`
  const [role = ''] = (await answerOf(parts, { ...asked, url: roles, headers })).trim().split('\n')
  if (role === '') throw new CloudCredentialError(`${whom} knows no role`)
  const text = await answerOf(parts, { ...asked, url: roles + encodeURIComponent(role), headers })
  return lentOf(membersOf(text, whom), { whom, session: 'Token' })
}

/** STS writes the end in seconds in JSON, and as a date elsewhere. */
function lentOf(
  members: Readonly<Record<string, unknown>>,
  { whom, session }: { whom: string; session: string },
): Lent<AwsCredentials> {
  const { Expiration: end } = members
  const expiresAt = typeof end === 'number' ? end * 1000 : typeof end === 'string' ? Date.parse(end) : Number.NaN
  if (!Number.isFinite(expiresAt)) throw new CloudCredentialError(`${whom} did not say how long its credentials last`)
  return {
    value: {
      accessKeyId: textIn(members, 'AccessKeyId', whom),
      secretAccessKey: textIn(members, 'SecretAccessKey', whom),
      sessionToken: textIn(members, session, whom),
    },
    expiresAt,
  }
}
