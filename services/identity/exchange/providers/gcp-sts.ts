import type { Credential, CredentialProvider, CredentialRequest, ProviderFailure, ProviderParams } from '../provider.ts'
import { assertion } from './assertion.ts'
import {
  bearerToken,
  type CloudFailure,
  type CloudParts,
  credentialUntil,
  type ErrorReader,
  form,
  isSecret,
  jsonMembers,
  malformed,
  post,
} from './cloud.ts'
import { ADDRESS, COMMON_PARAMS, type ParamRules, param, paramProblems, under } from './params.ts'

/** Life of a federated token in seconds; it cannot be requested. */
const FEDERATED_SECONDS = 3600
/** The longest life of a service account's token, in seconds. */
const MOST_SECONDS = 3600
const CLOUD_PLATFORM = 'https://www.googleapis.com/auth/cloud-platform'

const PARAMS: ParamRules = {
  ...COMMON_PARAMS,
  workloadIdentityProvider: {
    required: true,
    fits: (text) =>
      /^\/\/iam\.googleapis\.com\/projects\/\d+\/locations\/global\/workloadIdentityPools\/[a-z0-9-]+\/providers\/[a-z0-9-]+$/.test(
        text,
      ),
    must: 'be //iam.googleapis.com/projects/<number>/locations/global/workloadIdentityPools/<pool>/providers/<provider>',
  },
  serviceAccount: { fits: (text) => /^[a-z0-9-]+@[a-z0-9.-]+$/.test(text), must: "be a service account's e-mail" },
  scope: { fits: (text) => /^[\x21-\x7e]{1,512}$/.test(text), must: 'be one OAuth scope' },
  endpoint: ADDRESS,
  credentialsEndpoint: ADDRESS,
}

/** Workload identity federation of Google Cloud: a federated token and, with `serviceAccount`, that account's in its place. */
export function gcpSts(parts: CloudParts): CredentialProvider {
  return {
    name: 'gcp-sts',
    problems: (params) => paramProblems(PARAMS, params),
    leastSeconds: (params) => (param(params, 'serviceAccount') === '' ? FEDERATED_SECONDS : 0),
    async issue(request) {
      const federated = await federatedToken(parts, request)
      if (federated.kind === 'failed' || param(request.audience.params, 'serviceAccount') === '') return federated
      return impersonate(parts, request, federated.accessToken)
    },
  }
}

/** RFC 8693 at Google's token service. */
async function federatedToken(parts: CloudParts, request: CredentialRequest): Promise<Credential | CloudFailure> {
  const { params } = request.audience
  const provider = param(params, 'workloadIdentityProvider')
  const url = under(param(params, 'endpoint', 'https://sts.googleapis.com'), '/v1/token')
  const fields = {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    audience: provider,
    scope: param(params, 'serviceAccount') === '' ? scopeOf(params) : CLOUD_PLATFORM,
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    subject_token: await assertion(parts, request, param(params, 'audience', provider)),
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  }
  const answer = await post(parts, form(url, fields), ERRORS)
  return answer.kind === 'failed' ? answer : bearerToken(answer.text)
}

/** `generateAccessToken` of the service account, as the federated identity. */
async function impersonate(
  parts: CloudParts,
  { audience: { params }, lifetimeSeconds }: CredentialRequest,
  federated: string,
): Promise<Credential | ProviderFailure> {
  const account = encodeURIComponent(param(params, 'serviceAccount'))
  const host = param(params, 'credentialsEndpoint', 'https://iamcredentials.googleapis.com')
  const answer = await post(
    parts,
    {
      url: under(host, `/v1/projects/-/serviceAccounts/${account}:generateAccessToken`),
      headers: { authorization: `Bearer ${federated}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        scope: [scopeOf(params)],
        lifetime: `${Math.min(lifetimeSeconds, MOST_SECONDS)}s`,
      }),
    },
    ERRORS,
  )
  if (answer.kind === 'failed') return answer
  const { accessToken, expireTime } = jsonMembers(answer.text) ?? {}
  if (!isSecret(accessToken)) return malformed('no accessToken')
  if (typeof expireTime !== 'string' || !TIME.test(expireTime)) return malformed('no expireTime')
  return credentialUntil(parts, accessToken, Date.parse(expireTime))
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/

function scopeOf(params: ProviderParams): string {
  return param(params, 'scope', CLOUD_PLATFORM)
}

/** The token service writes `error` as OAuth does, other services an object with `status`. */
const ERRORS: ErrorReader = {
  code(text) {
    const { error } = jsonMembers(text) ?? {}
    if (typeof error === 'string') return error
    if (typeof error !== 'object' || error === null || !('status' in error)) return null
    return typeof error.status === 'string' ? error.status : null
  },
  passing: [],
}
