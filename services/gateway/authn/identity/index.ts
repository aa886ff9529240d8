export {
  type Authenticator,
  type AuthenticatorConfig,
  type AuthenticatorOptions,
  type AuthMetrics,
  createAuthenticator,
} from './authenticate.ts'
export type { DpopOutcome } from './dpop.ts'
export { openPeople, type People, type Person } from './issuers/people.ts'
export type { ScopeRules } from './issuers/scopes.ts'
