export {
  type Authenticator,
  type AuthenticatorConfig,
  createAuthenticator,
} from './authenticate.ts'
export { openPeople, type People } from './issuers/people.ts'
