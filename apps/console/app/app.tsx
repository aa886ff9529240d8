import { useEffect, useState } from 'preact/hooks'
import { ApiError, Client, type Login, type Session } from '../api/client.ts'
import { Problem } from '../ui/parts.tsx'
import { Frame } from './frame.tsx'
import { Live } from './live.ts'
import { LoginPage } from './login.tsx'
import { asApiError } from './query.ts'
import { goTo } from './route.ts'
import { loadSession, redeemLink, type Shared, SharedContext } from './session.ts'
import { Toasts, useToasts } from './toasts.tsx'

type State =
  | { readonly kind: 'loading' }
  | { readonly kind: 'failed'; readonly error: ApiError }
  | { readonly kind: 'login'; readonly ways: readonly Login[]; readonly error: ApiError | null }
  | { readonly kind: 'open'; readonly session: Session; readonly client: Client; readonly live: Live }

/** The console: the login page, or the frame with the page of the address. */
export function App() {
  const [state, setState] = useState<State>({ kind: 'loading' })
  const { toasts, notify } = useToasts()
  const start = () => void open(() => start()).then(setState)
  useEffect(start, [])
  useEffect(() => () => (state.kind === 'open' ? state.live.close() : undefined), [state])
  if (state.kind === 'loading') return <p class="loading">Loading …</p>
  if (state.kind === 'failed') {
    return (
      <main class="login">
        <Problem error={state.error} retry={start} />
      </main>
    )
  }
  if (state.kind === 'login') return <LoginPage ways={state.ways} error={state.error} retry={start} />
  const shared: Shared = { session: state.session, client: state.client, live: state.live, notify }
  return (
    <SharedContext.Provider value={shared}>
      <Frame />
      <Toasts toasts={toasts} />
    </SharedContext.Provider>
  )
}

/** Redeems a one-time link if the address has one, and loads the session. */
async function open(loggedOut: () => void): Promise<State> {
  let linkError: ApiError | null = null
  const failure = /^#login-error=([\w-]{1,64})$/.exec(window.location.hash)?.[1]
  if (failure !== undefined) {
    goTo(window.location.pathname, { replace: true })
    linkError = new ApiError(0, failure, `The login did not succeed (${failure}). Log in again.`)
  }
  const code = /^#link=([\w.~-]{1,2048})$/.exec(window.location.hash)?.[1]
  if (code !== undefined) {
    // The code does not stay in the address bar or in the history.
    goTo(window.location.pathname + window.location.search, { replace: true })
    linkError = await redeemLink(code).then(() => null, asApiError)
  }
  try {
    const loaded = await loadSession(window.location.pathname + window.location.search)
    if (!('name' in loaded)) return { kind: 'login', ways: loaded, error: linkError }
    const client = new Client(loaded.csrf, loggedOut)
    return { kind: 'open', session: loaded, client, live: new Live('/v1/events') }
  } catch (error) {
    return { kind: 'failed', error: asApiError(error) }
  }
}
