"""Two texts of the length real teams write: an incident with its timeline, and a runbook that does not fit any budget."""

from governance.demo.stage import text

REGATTA = text("""
    # Regatta Saturday

    ## In one sentence

    Between 17:52 and 18:41 arrivals took up to 40 seconds, because the invoices of the night before were still being made and held
    every database connection; no arrival was lost, 41 waited longer than ten seconds.

    ## Timeline (harbour time)

    | time | what happened | who noticed |
    |---|---|---|
    | 05:00 | Nightly invoices start. 1,912 stays instead of the usual 300: the regatta's guests | nobody |
    | 07:30 | Invoices should be done; they are at stay 410 | nobody |
    | 12:10 | Invoices are at stay 1,020. The job has no limit on its running time | nobody |
    | 16:40 | First arrivals of the race. 6 of 20 connections are left for people | nobody |
    | 17:52 | The job opens its last parallel batch. 0 connections left | monitoring, as a warning |
    | 17:55 | Harbour master of Grimsund: "The list does not open" | phone |
    | 18:03 | Ballast looks at the web machines. Nothing to see: 4 % load | Ballast |
    | 18:12 | Lantern suspects the map and turns it off. No change | Lantern |
    | 18:20 | Keel sees 20 sessions `idle in transaction`, all from `jobs/` | Keel |
    | 18:31 | The job is stopped. Its transactions take ten minutes to end: each waits for the mail server | Keel |
    | 18:41 | Arrivals take 0.2 s again | harbour master |
    | 21:00 | Invoices are started again by hand, with two connections | Ballast |
    | 23:48 | All invoices are out | Ballast |

    ## Why it could happen

    1. The job and the people drew from one pool. Nobody had decided that; it was the default.
    2. The job kept a transaction open while it talked to the mail server. A slow mail server is then a slow harbour.
    3. The job has no deadline. It ran for thirteen hours and nothing asked why.
    4. The warning at 17:52 said `pool exhausted` and named no job.

    ## What went well

    - The handhelds wrote arrivals on the device and sent them later: none was lost.
    - The replay showed on Sunday that every berth of that evening is right.
    - Two people and two agents looked at different places and said so in one channel.

    ## What we learnt

    ```sql
    -- the query that would have told us at 12:10
    select application_name, state, count(*), max(now() - xact_start) as oldest
    from pg_stat_activity
    where datname = 'kaimauer'
    group by 1, 2
    order by oldest desc nulls last;
    ```

    A job that talks to the world must not hold a transaction while it does. A job without a deadline is a job nobody owns. And a
    harbour master who phones is monitoring, too: the first call came three minutes after the warning, and was clearer.
""")

_CABINETS = (
    ("Q01", "A north", "10.4.0.11", "fibre", "12 meters; the key hangs in the office, not on the hook"),
    ("Q02", "A south", "10.4.0.12", "fibre", "12 meters"),
    ("Q03", "B north", "10.4.0.13", "fibre", "16 meters; the breaker trips when two kettles meet"),
    ("Q04", "B south", "10.4.0.14", "LTE", "16 meters; no signal below 0.4 m tide"),
    ("Q05", "C", "10.4.0.15", "LTE", "8 meters; firmware 2.1, do not update"),
    ("Q06", "D", "10.4.0.16", "LTE", "8 meters; firmware 2.1, do not update"),
    ("Q07", "E north", "10.4.0.17", "fibre", "20 meters"),
    ("Q08", "E south", "10.4.0.18", "fibre", "20 meters; wasps in August"),
    ("Q09", "F", "10.4.0.19", "radio", "6 meters; restart the radio, never the cabinet"),
    ("Q10", "fuel", "10.4.0.20", "fibre", "2 meters; ask the fuel company first"),
    ("Q11", "crane", "10.4.0.21", "fibre", "1 meter, 63 A; tell the crane driver before anything"),
    ("Q12", "club house", "10.4.0.22", "fibre", "4 meters; closed on Mondays"),
    ("Q13", "breakwater", "10.4.0.23", "radio", "3 meters; reachable by boat only"),
    ("Q14", "guest quay", "10.4.0.24", "fibre", "24 meters; busiest, restart at night only"),
)

RUNBOOK = (
    text("""
        # Runbook: quay cabinets

        A quay cabinet holds the power meters of a pontoon and a gateway that reports them every minute. When it is silent, boats get
        power and nobody is billed. Work through this list from the top; most silences end at step 2.

        1. Look at the tide. Q04 has no signal below 0.4 m; it comes back by itself and sends what it kept.
        2. Look at the gateway's page (`http://<address>/status`, only from the jump host). `last_report` older than five minutes and
           `uptime` short: it restarts in circles. Take the newest firmware back: `gwctl rollback <cabinet>`.
        3. Ping works and the page does not: restart the gateway alone, `gwctl restart <cabinet> --gateway`. Never use `--all`: it cuts
           the power of every boat on the pontoon, and fridges on boats do not forgive that.
        4. Ping does not work: ask the harbour master to look at the green light. Off means the breaker; on means the network.
        5. Breaker: only the harbour master may close it, after walking along the pontoon. We never do that from afar.
        6. Network by radio (Q09, Q13): restart the radio on the club house's roof, `gwctl restart radio-1`.
        7. Silent for more than an hour: write the meters' last values into the log with `meter-note`, so that billing can go on later.
           Do not estimate. A guest pays what was measured or does not pay.

        ## Things that look wrong and are not

        - A meter that counts backwards on Q11: the crane feeds back when it lowers a boat. Negative values are real.
        - Two cabinets that report the same minute twice in October: summer time ends.
        - `voltage 207` on Q08 in August: long cable, many coolers. Tell the harbour master above ten boats.
        - A report from the future by up to two seconds: the gateways' clocks drift, the log takes its own time.

        ## Things that look right and are not

        - All cabinets report exactly 0.0: the collector was restarted without its calibration. Check `calibration.json` is there.
        - Q05 and Q06 report the same values: somebody swapped their network cables again. The serial number is in the report.
        - A cabinet that never fails over to LTE: the SIM has expired. They expire in May, all on one day.

        ## Cabinets

        | cabinet | pontoon | address | network | to know |
        |---|---|---|---|---|
    """)
    + "\n"
    + "\n".join(f"| {' | '.join(cabinet)} |" for cabinet in _CABINETS)
    + "\n\n"
    + text("""
        ## Whom to call

        | what | who | when |
        |---|---|---|
        | power, breakers, anything that smells | harbour master on duty | always, first |
        | gateways, radio, collector | Ballast's person of the week | 06:00 to 22:00 |
        | meters' calibration | the meter company, contract 7731 | working days |
        | SIM cards | Tobias | before they expire, please |

        ## After it is over

        Write one line into the incident list: cabinet, from, to, cause, what was billed. Five silences of one cabinet in a season mean
        it is replaced; nobody argues about that any more. If the cause is new, add it here, in the place where somebody will look.
        Remove what is no longer true: this page is read at night, by someone who is tired, with one hand on a wet railing.

        Spare gateways: two in the office of Grimsund (labelled S1, S2, firmware 2.3), one in Hafnarvík (S3, firmware 2.1, for Q05 and
        Q06 only). A spare is taken into service with `gwctl adopt <spare> --as <cabinet>`; the meters' serial numbers move along, the
        history stays with the cabinet. Send the broken one to the meter company with the form in the drawer. They want the firmware's
        version on the form and send it back without it.
    """)
)
