import { assumeRoleForm, stsOrigin } from '@plat/http'
import type { Credential, CredentialProvider, CredentialRequest, ProviderFailure, ProviderParams } from '../provider.ts'
import { assertion } from './assertion.ts'
import {
  type CloudParts,
  credentialUntil,
  type ErrorReader,
  form,
  isSecret,
  malformed,
  post,
  withRetries,
} from './cloud.ts'
import { ADDRESS, COMMON_PARAMS, type ParamRules, param, paramProblems, under } from './params.ts'

/** STS gives no shorter credential, in seconds. */
const LEAST_SECONDS = 900
/** STS gives no longer credential, whatever the role allows, in seconds. */
const MOST_SECONDS = 43_200
/** `RoleSessionName` has at most 64 characters: the name of the agent, a dot, and a `jti` of 36. */
const AGENT_CHARS = 27

const PARAMS: ParamRules = {
  ...COMMON_PARAMS,
  roleArn: {
    required: true,
    fits: (text) => /^arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,512}$/.test(text),
    must: 'be the ARN of a role: arn:aws:iam::<account>:role/<name>',
  },
  region: { fits: (text) => /^[a-z]{2,}(-[a-z]+)+-\d$/.test(text), must: 'be the name of a region: eu-central-1' },
  endpoint: ADDRESS,
}

/** `AssumeRoleWithWebIdentity` of the AWS security token service. It is not signed: the assertion is the credential. */
export function awsSts(parts: CloudParts): CredentialProvider {
  return {
    name: 'aws-sts',
    problems: (params) => paramProblems(PARAMS, params),
    leastSeconds: () => LEAST_SECONDS,
    issue: (request) => withRetries(parts, () => assumeRole(parts, request)),
  }
}

async function assumeRole(parts: CloudParts, request: CredentialRequest) {
  const { subject, audience, jti, lifetimeSeconds } = request
  const { params } = audience
  const fields = assumeRoleForm({
    roleArn: param(params, 'roleArn'),
    // Appears in every line of CloudTrail; the `jti` leads from there to the broker's record of issuance.
    sessionName: `${subject.agent.slice(0, AGENT_CHARS)}.${jti}`,
    token: await assertion(parts, request, param(params, 'audience', 'sts.amazonaws.com')),
    durationSeconds: Math.min(Math.max(lifetimeSeconds, LEAST_SECONDS), MOST_SECONDS),
  })
  const answer = await post(parts, form(endpointOf(params), fields), ERRORS)
  return answer.kind === 'failed' ? answer : credentialOf(parts, answer.text)
}

function endpointOf(params: ProviderParams): string {
  return under(param(params, 'endpoint', stsOrigin(param(params, 'region'))), '/')
}

const ERRORS: ErrorReader = {
  code: (text) => element(text, 'Code'),
  passing: ['IDPCommunicationError'],
}

/** Reads the answer of STS. `access_token` is the JSON document that the AWS SDKs expect of a `credential_process`. */
export function credentialOf(parts: Pick<CloudParts, 'clock'>, text: string): Credential | ProviderFailure {
  const keyId = element(text, 'AccessKeyId')
  const secret = element(text, 'SecretAccessKey')
  const sessionToken = element(text, 'SessionToken')
  const expiration = element(text, 'Expiration') ?? ''
  if (!/^\s*<(\?xml[^<>]*>\s*<)?AssumeRoleWithWebIdentityResponse[\s>]/.test(text))
    return malformed('of another action')
  if (!isSecret(keyId) || !isSecret(secret) || !isSecret(sessionToken))
    return malformed('a part of the keys is missing')
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/.test(expiration)) return malformed('no Expiration')
  const document = {
    Version: 1,
    AccessKeyId: keyId,
    SecretAccessKey: secret,
    SessionToken: sessionToken,
    Expiration: expiration,
  }
  return credentialUntil(parts, JSON.stringify(document), Date.parse(expiration))
}

/**
 * The text of the one element with this name. Null when there is none, more than one, or when it holds anything but
 * text: what STS repeats of a request is escaped and cannot look like an element.
 */
function element(xml: string, name: string): string | null {
  if (xml.includes('<!')) return null
  const parts = xml.split(`<${name}>`)
  const [inside, rest] = (parts[1] ?? '').split(`</${name}>`)
  if (parts.length !== 2 || rest === undefined || inside === undefined) return null
  return /[<>&]/.test(inside) ? null : inside
}
