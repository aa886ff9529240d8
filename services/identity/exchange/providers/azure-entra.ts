import type { CredentialProvider, CredentialRequest } from '../provider.ts'
import { assertion } from './assertion.ts'
import { bearerToken, type CloudParts, type ErrorReader, form, jsonMembers, post, withRetries } from './cloud.ts'
import { ADDRESS, COMMON_PARAMS, type ParamRules, param, paramProblems, under } from './params.ts'

/** Entra chooses a life of 60 to 90 minutes; it cannot be requested. In seconds. */
const LEAST_SECONDS = 3600

const PARAMS: ParamRules = {
  ...COMMON_PARAMS,
  tenant: {
    required: true,
    fits: (text) => /^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/.test(text),
    must: 'be the ID or a domain of a tenant',
  },
  clientId: { required: true, fits: (text) => /^[A-Za-z0-9-]{1,64}$/.test(text), must: 'be the ID of an application' },
  scope: {
    required: true,
    fits: (text) => /^[\x21-\x7e]{1,512}\/\.default$/.test(text),
    must: 'be <resource>/.default: https://storage.azure.com/.default',
  },
  endpoint: ADDRESS,
}

/** Client credentials of Microsoft Entra with a federated assertion (RFC 7523) in place of a secret. */
export function azureEntra(parts: CloudParts): CredentialProvider {
  return {
    name: 'azure-entra',
    problems: (params) => paramProblems(PARAMS, params),
    leastSeconds: () => LEAST_SECONDS,
    issue: (request) => withRetries(parts, () => clientCredentials(parts, request)),
  }
}

async function clientCredentials(parts: CloudParts, request: CredentialRequest) {
  const { params } = request.audience
  const authority = param(params, 'endpoint', 'https://login.microsoftonline.com')
  const url = under(authority, `/${param(params, 'tenant')}/oauth2/v2.0/token`)
  const fields = {
    grant_type: 'client_credentials',
    client_id: param(params, 'clientId'),
    scope: param(params, 'scope'),
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: await assertion(parts, request, param(params, 'audience', 'api://AzureADTokenExchange')),
  }
  const answer = await post(parts, form(url, fields), ERRORS)
  return answer.kind === 'failed' ? answer : bearerToken(answer.text)
}

/** The number of `error_codes` says more than `error`. A credential that was just configured is not known everywhere yet. */
const ERRORS: ErrorReader = {
  code(text) {
    const { error, error_codes: codes } = jsonMembers(text) ?? {}
    const [number]: readonly unknown[] = Array.isArray(codes) ? codes : []
    if (typeof number === 'number' && Number.isSafeInteger(number)) return `AADSTS${number}`
    return typeof error === 'string' ? error : null
  },
  passing: ['AADSTS70021'],
}
