"""The stop words of languages that are written with spaces, by the name of the language's Snowball stemmer.

Stop words show which language a text is in. Nobody searches for them, because they carry too little meaning. The lists
contain only words that mean nothing when they stand alone: articles, pronouns, prepositions, conjunctions, and forms of
"to be" and "to have".
"""

STOP_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "english": """
            a an and are as at be been but by did do does for from had has have he her his how i if in into is it its
            my no not of on or our she so such than that the their them then there these they this to was we were what
            when where which who why will with would you your s t
        """,
        "german": """
            aber als am an auch auf aus bei bis das dass dem den der des die durch ein eine einem einen einer eines er
            es für hat haben ich ihr im in ist kein keine mit nach nicht noch nur oder sein sich sie sind so über um
            und uns unter vom von vor war waren was wenn werden wer wie wird wir wo wurde zu zum zur
        """,
        "french": """
            à au aux avec c ce ces cette d dans de des du elle elles en est et été était il ils j je l la le les leur
            leurs lui m mais n ne nous on ont ou où par pas pour qu que quel quelle quels quelles qui s sa se ses son
            sont sur t un une vous y
        """,
        "spanish": """
            a al como con cuál cuáles cuándo cuánto cuántos cuántas cómo de del dónde el ella ellos en entre era es esa
            ese esta este esto está están fue fueron ha han hay la las le les lo los más no o para pero por qué que
            quién quiénes se según ser si sin sobre son su sus también un una unas uno unos y ya
        """,
        "italian": """
            a ad ai al alla alle anche che chi ci come con cui da dal dalla dei del della delle dello di dove e ed è
            era gli ha hanno i il in io l la le lo ma nel nella non o per perché più qual quale quali quando quanto
            quanti se si sono su sua suo sul sulla tra un una uno
        """,
        "portuguese": """
            a ao aos as à às com como da das de do dos e é ela ele em entre era está eu foi foram há isso já mais mas
            na nas não no nos o onde os ou para pela pelas pelo pelos por qual quais quando quanto quantos que quem se
            ser sem seu seus são sua suas também um uma
        """,
        "dutch": """
            aan al als bij dan dat de deze die dit door een en er had heb heeft het hij hoe ik in is je kan maar me met
            mijn naar niet nog of om onder ook op over te tot uit van voor waar wat was we welke wie wij wordt worden
            ze zich zij zijn
        """,
        "swedish": """
            att av de den det du där eller en ett från för ha hade han har hon hur i inte jag kan med men mot när och
            om på sig som så till under upp ut vad var vem vi vid vilka vilken vilket är över
        """,
        "danish": """
            af alle at blev da de deres der det den du efter eller en er et for fra har han havde hun hvad hvem hvilken
            hvilket hvor hvordan hvornår i ikke jeg kan man med men og om op på sig som til ud var ved vi
        """,
        "norwegian": """
            av at ble da de den det du eller en er et etter for fra ha hadde han har hun hva hvem hvilken hvilket hvor
            hvordan i ikke jeg kan man med men når og om opp på seg som så til ut var ved vi
        """,
        "finnish": """
            ei eivät että hän he ja jos jotka joka kanssa kuin kun kuka me mikä minä missä miten mitä mukaan mutta myös
            ne niin nyt oli olivat olla on ovat se sekä sen siitä tai tämä vai
        """,
        "polish": """
            aby ale bo być był była było były co czy dla do gdy gdzie go i ich ile jak jako jaki jaka jakie jego jej
            jest już kiedy kto która które który lub ma na nie o od oraz po pod przez przy się są ta tak tego ten to w
            we z za że
        """,
        "czech": """
            a aby ale ani být byl byla bylo byly co do i jak jaká jaké jaký jako je jeho jejich jen jsem jsou k kde kdo
            kdy která které který má mezi na nebo není o od po pod pro při s se si také tak to v ve z za ze že
        """,
        "romanian": """
            a ai al ale am ar are au ca care ce cine cu cum când că de din după el ea este eu fi fost în între la lor
            mai nu o pe pentru prin sau se și sunt su un una unei unde unui
        """,
        "hungarian": """
            a az azt be csak de egy el én és ez ezt ha hány hogy hogyan hol is ki le lesz meg mely melyik mi mikor mint
            mit nem ő pedig szerint van volt vagy
        """,
        "turkish": """
            ama bir bu çok da daha de değil diye en gibi hangi için ile ise kaç kadar ki kim mi mı mu mü ne neden
            nasıl nerede olan olarak oldu sonra şu ve veya ya
        """,
        "indonesian": """
            ada adalah akan apa atau bagaimana bahwa berapa dalam dan dapat dari dengan di dia ini itu juga karena ke
            kepada mana mengapa mereka oleh pada saat saya sebagai siapa tidak untuk yang
        """,
        "catalan": """
            a al als amb aquest aquesta com de del dels el els en entre es és està ha han hi i la les li lo més no o on
            per però pel pels qual quan quant que qui quin quina quins quines s se ser seu seva són també un una
        """,
        "russian": """
            а без был была были было быть в вам во вы где для до его ее её если есть же за и из или им их как какая
            какие какой когда кто ли мы на не него нет но о об он она они от по под при с сколько со так также то что
            чтобы это я
        """,
    }.items()
}
