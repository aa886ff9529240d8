import type { ApiError, Login } from '../api/client.ts'
import { Problem } from '../ui/parts.tsx'
import { Text } from '../ui/text.tsx'

/** The page of people who are not logged in: it says how to log in. */
export function LoginPage(props: {
  readonly ways: readonly Login[]
  readonly error: ApiError | null
  readonly retry: () => void
}) {
  const { ways, error, retry } = props
  return (
    <main class="login">
      <h1>plat console</h1>
      {error !== null && <Problem error={error} />}
      {ways.map((way) =>
        way.kind === 'oidc' ? (
          <a
            class="button primary wide"
            href={`${way.url}?${new URLSearchParams({ to: window.location.pathname })}`}
            data-load
          >
            Log in
          </a>
        ) : (
          <div>
            <p>Run this command in the folder of the running gateway; it opens this page with a one-time link:</p>
            <pre class="command">
              <Text of={way.hint} />
            </pre>
          </div>
        ),
      )}
      {ways.length === 0 && <p>This gateway has no way to log in. An administrator sets adminAuth.</p>}
      <button type="button" class="small" onClick={retry}>
        I have logged in elsewhere: try again
      </button>
    </main>
  )
}
