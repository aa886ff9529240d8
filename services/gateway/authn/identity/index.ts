export {
  type Authenticator,
  type AuthenticatorConfig,
  type AuthMetrics,
  createAuthenticator,
} from './authenticate.ts'
export type { DpopOutcome } from './dpop.ts'
export { openPeople, type People } from './issuers/people.ts'
