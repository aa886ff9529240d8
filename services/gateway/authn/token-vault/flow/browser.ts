/** The cookie that binds a flow to the browser that began it. */
export interface BrowserCookie {
  /** Returns the cookie's value, or null if it is absent or malformed. */
  read(header: string | undefined): string | null
  /** Returns the value of `Set-Cookie`. */
  write(browser: string): string
}

/** 32 bytes in base64url. */
const VALUE = /^[A-Za-z0-9_-]{43}$/

/** Over TLS the prefix `__Host-` prevents other hosts from setting it. Plain HTTP is for loopback only. */
export function browserCookie({
  isSecure,
  ttlSeconds,
}: {
  readonly isSecure: boolean
  readonly ttlSeconds: number
}): BrowserCookie {
  const name = `${isSecure ? '__Host-' : ''}plat-connect`
  // Lax: sent with the redirect of an authorization server, but not with forms of other sites.
  const attributes = `; Path=/; HttpOnly; SameSite=Lax; Max-Age=${ttlSeconds}${isSecure ? '; Secure' : ''}`
  return {
    read(header = '') {
      const found = header.split(/;\s*/).find((pair) => pair.startsWith(`${name}=`))
      const value = found?.slice(name.length + 1) ?? ''
      return VALUE.test(value) ? value : null
    },
    write: (browser) => `${name}=${browser}${attributes}`,
  }
}
