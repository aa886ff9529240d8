export {
  type Admin,
  type AdminOptions,
  type AdminRoutes,
  answerFault,
  type ConsoleLogin,
  createAdmin,
} from './admin.ts'
export { type AdminAuthentication, throttled } from './auth.ts'
export type { BrowserAuth, BrowserCaller } from './browser/browser-auth.ts'
export { decodeBrowserEvent } from './browser/events.ts'
export { BrowserSessions, csrfOf } from './browser/sessions.ts'
export { cookieIn, cookieOf } from './browser/site.ts'
export type { Caller } from './caller.ts'
export { adminBlock, adminOidcBlock, adminStepUpBlock } from './config.ts'
export { AdminError } from './error.ts'
export { limitOf, type Page, type PageSize, page } from './page.ts'
export { isSamePerson, type KnownPerson, linkOf, marksOf, type PeopleTable, type PersonMarks } from './people.ts'
export { bodyAs, flagIn, momentIn, parameter, queried, seqIn } from './read.ts'
export { homeOf, listsOf, may, type Person, type Principal, principalOf } from './roles.ts'
export { type AdminRoute, adminRoutes, type RouteRow } from './routes.ts'
export { isRequired, STEP_UP_ACTIONS } from './step-up.ts'
export type { AdminRefusal } from './throttle/refused.ts'
