import { readText } from '@plat/config'
import { withoutTrailing } from '@plat/core'
import { type AwsCredentials, assumeRoleForm, awsCredentialsOf, stsOrigin } from '@plat/http'
import {
  answerOf,
  CloudCredentialError,
  type CloudParts,
  type Expiring,
  form,
  MAX_FILE_BYTES,
  membersOf,
  textIn,
} from './cloud.ts'

/**
 * Fetches AWS credentials from the first source in the environment: access keys, the web identity of a service account, or, with
 * `cloudCredentials.aws.imds`, the role of the machine. Throws `CloudCredentialError`.
 */
export async function awsCredentials(parts: CloudParts): Promise<Expiring<AwsCredentials>> {
  const { env, config } = parts
  const keys = awsCredentialsOf(env)
  if (keys !== null) return { value: keys, expiresAt: null }
  if (env.AWS_WEB_IDENTITY_TOKEN_FILE && env.AWS_ROLE_ARN) return await assumedRole(parts)
  if (config.aws.imds) return await machineRole(parts)
  throw new CloudCredentialError(
    'AWS: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, or cloudCredentials.aws.imds',
  )
}

/** `AssumeRoleWithWebIdentity` is unsigned: the token file is the credential, read each time because it rotates. */
async function assumedRole(parts: CloudParts): Promise<Expiring<AwsCredentials>> {
  const { env, config } = parts
  const { region, partitionDNSSuffix, stsEndpoint } = config.aws
  const token = (await readText(env.AWS_WEB_IDENTITY_TOKEN_FILE ?? '', MAX_FILE_BYTES))?.trim()
  if (!token) throw new CloudCredentialError('AWS: the file of AWS_WEB_IDENTITY_TOKEN_FILE cannot be read')
  const url = stsEndpoint || `${stsOrigin(region, partitionDNSSuffix)}/`
  const sessionName = env.AWS_ROLE_SESSION_NAME || 'plat-gateway'
  const fields = assumeRoleForm({ roleArn: env.AWS_ROLE_ARN ?? '', sessionName, token })
  // With this header STS responds with JSON.
  const text = await answerOf(parts, { service: 'AWS STS', url, ...form(fields) })
  const result = inside(
    inside(membersOf(text, 'AWS STS'), 'AssumeRoleWithWebIdentityResponse'),
    'AssumeRoleWithWebIdentityResult',
  )
  return expiringOf(inside(result, 'Credentials'), { service: 'AWS STS', session: 'SessionToken' })
}

function inside(members: Readonly<Record<string, unknown>>, name: string): Readonly<Record<string, unknown>> {
  const value = members[name]
  if (typeof value !== 'object' || value === null) throw new CloudCredentialError(`AWS STS returned no ${name}`)
  return { ...value }
}

/** Lifetime of the metadata service's session token, in seconds. */
const IMDS_TOKEN_SECONDS = '300'

/** Fetches the role of the machine by IMDSv2; never falls back to version 1. */
async function machineRole(parts: CloudParts): Promise<Expiring<AwsCredentials>> {
  const base = withoutTrailing(parts.env.AWS_EC2_METADATA_SERVICE_ENDPOINT || 'http://169.254.169.254', '/')
  const service = 'the metadata service of AWS'
  const request = { service, purpose: 'metadata' } as const
  const token = await answerOf(parts, {
    ...request,
    url: `${base}/latest/api/token`,
    method: 'PUT',
    headers: { 'x-aws-ec2-metadata-token-ttl-seconds': IMDS_TOKEN_SECONDS },
  })
  const headers = { 'x-aws-ec2-metadata-token': token.trim() }
  const roles = `${base}/latest/meta-data/iam/security-credentials/`
  const [role = ''] = (await answerOf(parts, { ...request, url: roles, headers })).trim().split('\n')
  if (role === '') throw new CloudCredentialError(`${service} has no role`)
  const text = await answerOf(parts, { ...request, url: roles + encodeURIComponent(role), headers })
  return expiringOf(membersOf(text, service), { service, session: 'Token' })
}

/** In JSON STS writes the expiration in seconds; elsewhere it is a date. */
function expiringOf(
  members: Readonly<Record<string, unknown>>,
  { service, session }: { service: string; session: string },
): Expiring<AwsCredentials> {
  const { Expiration: end } = members
  const expiresAt = typeof end === 'number' ? end * 1000 : typeof end === 'string' ? Date.parse(end) : Number.NaN
  if (!Number.isFinite(expiresAt))
    throw new CloudCredentialError(`${service} returned no expiration of its credentials`)
  return {
    value: {
      accessKeyId: textIn(members, 'AccessKeyId', service),
      secretAccessKey: textIn(members, 'SecretAccessKey', service),
      sessionToken: textIn(members, session, service),
    },
    expiresAt,
  }
}
